# tidy.awk - the checks of tidy.sh that read text: rooms, lengths, contracts, banned functions, white space.
#
# Called with `tools/rooms.txt` first, then C files named from the project's root. Every finding is
# printed as one line `file:line: what`; lines that begin with "warning" do not count.
#
# SPDX-License-Identifier: Apache-2.0

function found(at, what)
{
    print FILENAME ":" at ": " what
    bad++
}

# The room of src/PATH: the longest name in rooms.txt that is a prefix of PATH.
function room_of(path,    r, best)
{
    best = ""
    for (r in room)
        if (index(path, r "/") == 1 && length(r) > length(best))
            best = r
    return best
}

function may_use_header(path, allowed,    n, list, i)
{
    n = split(allowed, list, " ")
    for (i = 1; i <= n; i++)
        if (index(path, list[i]) == 1)
            return 1
    return 0
}

function check_include(name, quoted,    path, mine, theirs)
{
    if (FILENAME ~ /^samples\//) {
        if (quoted || name in header)
            found(FNR, "a sample includes \"" name "\"; samples know <pawl.h> only")
        return
    }
    if (FILENAME !~ /^src\//)
        return
    path = substr(FILENAME, 5)
    if (name in header) {
        if (!may_use_header(path, header[name]))
            found(FNR, name " stays inside " header[name])
        return
    }
    if (!quoted)
        return
    mine = room_of(path)
    if (mine == "")
        return
    if (name !~ /\//) {
        found(FNR, "write \"" mine "/" name "\": includes name their room")
        return
    }
    theirs = room_of(name)
    if (theirs == "")
        found(FNR, "\"" name "\" is in no room of tools/rooms.txt")
    else if (theirs != mine && index(" " room[mine] " ", " " theirs " ") == 0)
        found(FNR, mine " may not include headers of " theirs " (tools/rooms.txt)")
    else if (theirs != mine && theirs in shown &&
             index(" " shown[theirs] " ", " " substr(name, length(theirs) + 2) " ") == 0)
        found(FNR, name " stays inside " theirs "; others include " shown[theirs])
}

# Leaves only code in $0: comments and the contents of strings are removed, line by line.
function code_of(s,    out, c, two)
{
    out = ""
    while (s != "") {
        two = substr(s, 1, 2)
        c = substr(s, 1, 1)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                s = substr(s, 3)
            } else
                s = substr(s, 2)
        } else if (two == "/*") {
            in_comment = 1
            s = substr(s, 3)
        } else if (two == "//")
            break
        else if (c == "\"" && match(s, /^"([^"\\]|\\.)*"/)) {
            out = out "\"\""
            s = substr(s, RLENGTH + 1)
        } else if (c == "'" && match(s, /^'([^'\\]|\\.)+'/)) {
            out = out "' '"
            s = substr(s, RLENGTH + 1)
        } else {
            match(s, /^([^\/"']+|.)/)
            out = out substr(s, 1, RLENGTH)
            s = substr(s, RLENGTH + 1)
        }
    }
    return out
}

function check_banned(s,    word)
{
    while (match(s, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/)) {
        word = substr(s, RSTART, RLENGTH)
        sub(/[ \t]*\($/, "", word)
        if (word in banned)
            found(FNR, word "() is banned: " banned[word])
        s = substr(s, RSTART + RLENGTH)
    }
}

# A prototype begins in the first column and ends with `);`, perhaps lines later. A comment directly
# above covers it, and those that follow it without an empty line. `code` is $0 without comments.
function check_contract(    line)
{
    if (prototype != "")
        line = prototype code
    else if ($0 ~ /^[ \t]*\/\*/ || was_comment) {
        if ($0 !~ /\/\* ----/)
            covered = 1
        else
            covered = 0
        return
    } else if (code ~ /^[ \t]*$/ || $0 ~ /^(}|typedef|static|struct [a-z0-9_]+ {|extern "C)/ || $0 ~ /^# *define/) {
        covered = 0
        return
    } else if ($0 !~ /^[A-Za-z_]/)
        return
    else
        line = code
    if (prototype == "")
        prototype_at = FNR
    if (line ~ /;[ \t]*$/) {
        if (line ~ /\(/ && line !~ /{/ && !covered)
            found(prototype_at, "a prototype without its contract: say above it what it does")
        prototype = ""
    } else if (line ~ /[{}][ \t]*$/) {
        prototype = ""
        covered = 0
    } else
        prototype = line " "
}

function file_ends()
{
    if (last_file ~ /^src\// && last_line > 900) {
        print last_file ":" last_line ": " last_line " lines, limit 900"
        bad++
    }
}

BEGIN {
    banned["strcpy"] = banned["strcat"] = banned["stpcpy"] = "use buf_add or snprintf"
    banned["sprintf"] = banned["vsprintf"] = "use snprintf"
    banned["atoi"] = banned["atol"] = banned["atoll"] = banned["atof"] = "it hides errors; use text_*"
    banned["strtok"] = "it keeps state; use strtok_r or a loop"
    banned["localtime"] = banned["gmtime"] = banned["ctime"] = banned["asctime"] = \
        "it keeps state; times are int64 microseconds"
    banned["rand"] = banned["srand"] = "dice come from struct world"
    banned["gets"] = "it has no limit"
}

FILENAME ~ /rooms\.txt$/ {
    sub(/#.*/, "")
    if ($0 ~ /^[ \t]*$/)
        next
    left = $1
    sub(/:$/, "", left)
    right = $0
    sub(/^[^:]*:[ \t]*/, "", right)
    if (left ~ /\.h$/)
        header[left] = right
    else if (left ~ /\/$/)
        shown[substr(left, 1, length(left) - 1)] = right
    else
        room[left] = right
    next
}

FNR == 1 {
    file_ends()
    in_comment = 0
    in_function = 0
    start = 0
    covered = 0
    prototype = ""
    contracts = FILENAME ~ /^(include|src|test)\/.*\.h$/
    if (FILENAME ~ /^src\// && $0 !~ /^\/\*/)
        found(1, "a file opens with a comment: what it is, who calls it, what must stay true")
}

{
    last_file = FILENAME
    last_line = FNR
    width = $0
    gsub(/[\200-\277]/, "", width)
    if (length(width) > 100)
        found(FNR, length(width) " columns, limit 100")
    if ($0 ~ /[ \t]$/)
        found(FNR, "white space at the end of the line")
    if ($0 ~ /\t/)
        found(FNR, "a tab")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    quoted = $0 ~ /include[ \t]*"/
    name = $0
    sub(/^[^"<]*["<]/, "", name)
    sub(/[">].*/, "", name)
    check_include(name, quoted)
}

{
    was_comment = in_comment
    code = code_of($0)
    check_banned(code)
    if (contracts)
        check_contract()
}

# A function, as the formatter prints it: its braces are alone in the first column. It begins with the first line of its
# head, after the end of whatever comes before it.
FILENAME ~ /^src\// {
    if (in_function) {
        if ($0 ~ /^}/) {
            lines = FNR - start + 1
            if (lines > 80)
                found(start, "a function of " lines " lines, limit 80")
            else if (lines > 70)
                print "warning: " FILENAME ":" start ": a function of " lines \
                    " lines asks to be two (limit 80)"
            in_function = 0
            start = 0
        }
    } else if ($0 ~ /^{/) {
        in_function = 1
        if (!start)
            start = FNR
    } else if (code ~ /^[ \t]*$/ || $0 ~ /^#/ || code ~ /[;}][ \t]*$/)
        start = 0
    else if (!start)
        start = FNR
}

END {
    file_ends()
    exit bad > 0
}
