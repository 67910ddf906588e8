# words.awk - the checks of tidy.sh that read prose: banned words, and lines of pages that are too long.
#
# Called with tools/words.txt first, then pages (*.md) and C files. Of a page everything counts but code, of a C file
# the comments. Every finding is printed as one line `file:line: what`.
#
# SPDX-License-Identifier: Apache-2.0

function found(at, what)
{
    print FILENAME ":" at ": " what
    bad++
}

# One line of words.txt: words and what to write instead.
function read_words(line,    colon, n, i, list)
{
    sub(/#.*/, "", line)
    colon = index(line, ":")
    if (!colon)
        return
    n = split(substr(line, 1, colon - 1), list, /, */)
    for (i = 1; i <= n; i++) {
        word[++words] = tolower(list[i])
        instead[words] = substr(line, colon + 2)
    }
}

# Where the word stands in the text, as whole words; 0: it does not.
function stands(text, w,    from, at, rest)
{
    from = 1
    while ((at = index(substr(text, from), w)) > 0) {
        at += from - 1
        rest = substr(text, at + length(w), 1)
        if ((at == 1 || substr(text, at - 1, 1) !~ /[a-z0-9_]/) && rest !~ /[a-z0-9_]/)
            return at
        from = at + 1
    }
    return 0
}

# `tail` is the end of the line before, for what goes over two lines.
function check_words(text,    i, n, list, both)
{
    text = tolower(text)
    gsub(/[ \t*]+/, " ", text)
    sub(/^ /, "", text)
    both = tail == "" ? text : tail " " text
    for (i = 1; i <= words; i++)
        if (stands(text, word[i]) || (word[i] ~ / / && tail != "" && stands(both, word[i])))
            found(FNR, "\"" word[i] "\" is not used here: " instead[i] " (tools/words.txt)")
    n = split(text, list, " ")
    tail = ""
    for (i = n > 3 ? n - 2 : 1; i <= n; i++)
        tail = tail (tail == "" ? "" : " ") list[i]
}

function without_code(s)
{
    gsub(/`[^`]*`/, "", s)
    gsub(/\]\([^)]*\)/, "]", s)
    return s
}

# The comments of a line of C.
function comment_of(s,    out)
{
    out = ""
    while (s != "") {
        if (in_comment) {
            if (match(s, /\*\//)) {
                out = out substr(s, 1, RSTART - 1) " "
                s = substr(s, RSTART + 2)
                in_comment = 0
            } else {
                out = out s
                s = ""
            }
        } else if (substr(s, 1, 2) == "/*") {
            in_comment = 1
            s = substr(s, 3)
        } else if (match(s, /^"([^"\\]|\\.)*"/) || match(s, /^'([^'\\]|\\.)+'/))
            s = substr(s, RLENGTH + 1)
        else {
            match(s, /^([^\/"']+|.)/)
            s = substr(s, RLENGTH + 1)
        }
    }
    return out
}

FILENAME ~ /words\.txt$/ {
    read_words($0)
    next
}

FNR == 1 {
    in_comment = fenced = 0
    blank = 1
    tail = ""
}

FILENAME ~ /\.[ch]$/ {
    was = in_comment
    text = comment_of($0)
    if (!was)
        tail = ""
    if (text != "")
        check_words(without_code(text))
    next
}

/^ *```/ {
    fenced = !fenced
    blank = 1
    next
}

# Indented behind an empty line, or behind such a line: code.
fenced || (/^    / && blank) || /^<!--/ {
    tail = ""
    next
}

{
    blank = $0 ~ /^[ \t]*$/
    if (blank || /^\|/)
        tail = ""
    width = $0
    gsub(/[\200-\277]/, "", width)
    if ($0 !~ /^(\||!\[)/ && length(width) > 120)
        found(FNR, length(width) " columns of prose, limit 120")
    check_words(without_code($0))
}

END {
    exit bad > 0
}
