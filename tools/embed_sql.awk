# embed_sql.awk - turn sql/statements.txt and sql/ENGINE/ into C tables.
#
# Called by embed_sql.sh with the working directory sql/, `engines` and `out` set, statements.txt first. Invariant:
# every engine has exactly those statements of statements.txt that are for it (a name is followed by its engines;
# without any it is for all), each once; a text of sql/all/ is every engine's that has none of its own (sql_all.awk).
# A name that is followed by "test" is compiled in only in a test build (PAWL_TEST). Anything else is printed with file
# and line, and the build stops with nothing written.
#
# SPDX-License-Identifier: Apache-2.0

function complain(where, what)
{
    sub(/^sql\//, "", where)
    print "sql/" where ": " what > "/dev/stderr"
    bad++
}

# One line of text as one C literal, newline included.
function quoted(s)
{
    gsub(/\\/, "&&", s)
    gsub(/"/, "\\\\&", s)
    gsub(/\t/, "\\t", s)
    gsub(/\?\?/, "?\\?", s)
    return "\"" s "\\n\""
}

# The same without the newline, for the last line of a statement.
function quoted_last(s)
{
    s = quoted(s)
    return substr(s, 1, length(s) - 3) "\""
}

function ends_statement()
{
    if (name == "")
        return
    while (n > 0 && line[n] == "")
        n--
    if (n == 0)
        complain(name_at, "statement \"" name "\" has no text")
    sub(/;[ \t]*$/, "", line[n])
    for (i = 1; i <= n; i++)
        raw[engine, name] = raw[engine, name] (i > 1 ? "\n" : "") line[i]
    name = ""
    n = 0
}

# A statement as C literals, one for each line.
function literals(s,    i, count, part, out)
{
    count = split(s, part, "\n")
    for (i = 1; i <= count; i++)
        out = out "\n        " (i < count ? quoted(part[i]) : quoted_last(part[i]))
    return out
}

# A statement of sql/all/, unless the engine has its own.
function take_shared(engine, name)
{
    if ((engine, name) in seen || !(("all", name) in seen))
        return
    seen[engine, name] = seen["all", name]
    raw[engine, name] = in_engine(engine, raw["all", name])
    if (raw[engine, name] == "")
        complain(seen["all", name], "statement \"" name "\" cannot be written for " engine)
}

FNR == 1 {
    ends_statement()
    sub(/^\.\//, "", FILENAME)
    split(FILENAME, part, "/")
    engine = part[1]
    kind = FILENAME == "statements.txt" ? "names" : part[2] == "migrations" ? "migration" : "query"
    if (kind == "migration") {
        file = part[3]
        if (file !~ /^[0-9][0-9][0-9][0-9]_[a-z][a-z0-9_]*\.sql$/)
            complain(FILENAME ":1", "a migration is called NNNN_word.sql")
        number = substr(file, 1, 4) + 0
        word = substr(file, 6, length(file) - 9)
        if (number != migrations[engine] + 1)
            complain(FILENAME ":1", "migration " number " follows " migrations[engine] + 0 \
                ": numbers go up by one, each once")
        if (number in words && words[number] != word)
            complain(FILENAME ":1", "migration " number " is \"" words[number] "\" in another engine")
        words[number] = word
        migrations[engine] = number
        step_word[engine, number] = word
        half = "expand"
    }
}

{ sub(/\r$/, "") }

kind == "names" {
    sub(/#.*/, "")
    if (NF == 0)
        next
    if ($1 !~ /^[a-z][a-z0-9_]*$/)
        complain("statements.txt:" FNR, "\"" $1 "\" is no statement name")
    if ($1 in known)
        complain("statements.txt:" FNR, "\"" $1 "\" is listed twice")
    known[$1] = NF
    names[++count] = $1
    for (i = 2; i <= NF; i++) {
        if ($i == "test") {
            testing[$1] = 1
            known[$1]--
            continue
        }
        if (index(" " engines " ", " " $i " ") == 0)
            complain("statements.txt:" FNR, "\"" $i "\" is no engine")
        own[$i, $1] = 1
    }
    next
}

# What comes before and behind something of this statement: nothing of a test's is in a release.
function before(name)
{
    return name in testing ? "#ifdef PAWL_TEST\n" : ""
}

function behind(name)
{
    return name in testing ? "\n#endif" : ""
}

# Is this statement for the engine?
function has(engine, name)
{
    return known[name] == 1 || (engine, name) in own
}

# Comments stay inside migrations: the checksum covers the text as written.
kind == "migration" {
    if ($0 ~ /^-- finish[ \t]*$/) {
        if (half == "finish")
            complain(FILENAME ":" FNR, "a second \"-- finish\"")
        half = "finish"
        next
    }
    step[engine, number, half] = step[engine, number, half] "\n        " quoted($0)
    next
}

/^-- name:/ {
    ends_statement()
    name = $3
    name_at = FILENAME ":" FNR
    if (!(name in known))
        complain(name_at, "statement \"" name "\" is not in sql/statements.txt")
    else if (engine != "all" && !has(engine, name))
        complain(name_at, "statement \"" name "\" is not " engine "'s in sql/statements.txt")
    else if ((engine, name) in seen)
        complain(name_at, "engine " engine " has statement \"" name "\" twice, first at " \
            seen[engine, name])
    seen[engine, name] = name_at
    next
}

/^[ \t]*--/ { next }

name == "" {
    if ($0 !~ /^[ \t]*$/)
        complain(FILENAME ":" FNR, "SQL before the first \"-- name:\" line")
    next
}

/^[ \t]*$/ {
    if (n > 0)
        line[++n] = ""
    next
}

{ line[++n] = $0 }

END {
    ends_statement()
    engine_count = split(engines, engine_list, " ")
    for (e = 1; e <= engine_count; e++)
        for (i = 1; i <= count; i++)
            if (has(engine_list[e], names[i]))
                take_shared(engine_list[e], names[i])
    for (e = 1; e <= engine_count; e++)
        for (i = 1; i <= count; i++)
            if (has(engine_list[e], names[i]) && !((engine_list[e], names[i]) in seen))
                complain("sql/" engine_list[e], "engine " engine_list[e] " lacks statement \"" \
                    names[i] "\"")
    if (count == 0)
        complain("sql/statements.txt", "no statement names")
    if (bad) {
        print "embed_sql: " bad " mistake(s), nothing was written" > "/dev/stderr"
        exit 1
    }

    h = out "/sql_names.h"
    made = "/* Made by tools/embed_sql.awk from sql/; change those files instead. */"
    print made > h
    print "#ifndef SQL_NAMES_H\n#define SQL_NAMES_H\n\nenum sql_name {" > h
    for (i = 1; i <= count; i++)
        print before(names[i]) "    SQL_" toupper(names[i]) "," behind(names[i]) > h
    print "    SQL_COUNT\n};\n" > h
    print "/* One step of the schema. `finish` is \"\" when all of it is safe beside older nodes. */" > h
    print "struct sql_migration {\n    int number;        /* from 1; 0 ends the list */" > h
    print "    const char *word;\n    const char *expand;\n    const char *finish;\n};\n" > h
    print "extern const char *const sql_name_text[SQL_COUNT];" > h
    for (e = 1; e <= engine_count; e++) {
        print "extern const char *const sql_" engine_list[e] "[SQL_COUNT];" > h
        print "extern const struct sql_migration sql_" engine_list[e] "_migrations[];" > h
    }
    print "\n#endif" > h

    c = out "/sql_names.c"
    print made "\n#include \"sql_names.h\"\n\nconst char *const sql_name_text[SQL_COUNT] = {" > c
    for (i = 1; i <= count; i++)
        print before(names[i]) "    [SQL_" toupper(names[i]) "] = \"" names[i] "\"," behind(names[i]) > c
    print "};" > c

    for (e = 1; e <= engine_count; e++) {
        it = engine_list[e]
        c = out "/sql_" it ".c"
        print made "\n#include <stddef.h>\n\n#include \"sql_names.h\"\n" > c
        print "const char *const sql_" it "[SQL_COUNT] = {" > c
        for (i = 1; i <= count; i++)
            if (has(it, names[i]))
                print before(names[i]) "    [SQL_" toupper(names[i]) "] =" literals(raw[it, names[i]]) "," \
                    behind(names[i]) > c
        print "};\n\nconst struct sql_migration sql_" it "_migrations[] = {" > c
        for (i = 1; i <= migrations[it]; i++) {
            print "    { " i ", \"" step_word[it, i] "\"," > c
            print "      \"\"" step[it, i, "expand"] "," > c
            print "      \"\"" step[it, i, "finish"] " }," > c
        }
        print "    { 0, NULL, NULL, NULL },\n};" > c
    }
}
