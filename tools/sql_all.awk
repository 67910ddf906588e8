# sql_all.awk - statements of sql/all/, which are the same on every engine, in the words of one engine.
#
# For embed_sql.awk. A text of sql/all is written so that little has to be replaced:
#
#     pawl.schedule            a table
#     $1:int $2:text $3:bytes  values
#     $1:now                   a time; 0: the server's clock
#     $1:int[]                 one value of a column of them, in
#     INSERT ... rows($1:int[], $2:text[])
#     each UPDATE | DELETE | SELECT ...      the statement once for each value; it names every column
#     INSERT ONCE INTO ...     a row that exists already is left as it is
#     FOR UPDATE [SKIP LOCKED] nothing where there is one writer
#
# Words that one engine reserves and another does not are no names of tables or columns here. An engine's own file with
# the same statement wins.
#
# SPDX-License-Identifier: Apache-2.0

# The parts of `s` that match `pattern`, each replaced by what `word` makes of it.
function each_match(engine, s, pattern, word,    out, it)
{
    out = ""
    while (match(s, pattern)) {
        it = substr(s, RSTART, RLENGTH)
        out = out substr(s, 1, RSTART - 1) (word == "value" ? value_in(engine, it) : column_in(it))
        s = substr(s, RSTART + length(it))
    }
    return out s
}

function pg_type(type)
{
    return type == "int" ? "bigint" : type == "bytes" ? "bytea" : type
}

# "$1:int" or "$1:int[]" as a value.
function value_in(engine, it,    number, type)
{
    number = substr(it, 2, index(it, ":") - 2)
    type = substr(it, index(it, ":") + 1)
    if (engine == "sqlite")
        return "?" number
    if (engine == "mysql" && type == "now")
        return "IF($" number " > 0, $" number ", CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED))"
    if (engine == "mysql")
        return "$" number
    if (type == "now")
        return "CASE WHEN $" number "::bigint > 0 THEN $" number "::bigint " \
            "ELSE (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END"
    if (sub(/\[\]$/, "", type))
        return "$" number "::" pg_type(type) "[]"
    return "$" number "::" pg_type(type)
}

# "$1:int[]" in a statement for each value, on PostgreSQL: the column of a joined row. Remembers it in unnest_*.
function column_in(it,    number)
{
    number = substr(it, 2, index(it, ":") - 2)
    unnest[number] = value_in("pg", it)
    return "v.c" number
}

# "unnest($1::bigint[]) v (c1)" for the columns that column_in() met.
function unnest_text(    i, list, names)
{
    list = names = ""
    for (i = 1; i <= 20; i++)
        if (i in unnest) {
            list = list (list == "" ? "" : ", ") unnest[i]
            names = names (names == "" ? "" : ", ") "c" i
        }
    return "unnest(" list ") v (" names ")"
}

# A statement for each value, on PostgreSQL one statement with a join.
function each_in_pg(s,    verb)
{
    split("", unnest)
    s = each_match("pg", s, "\\$[0-9]+:[a-z]+\\[\\]", "column")
    verb = s
    sub(/[ \n].*/, "", verb)
    if (verb == "SELECT")
        return "SELECT q.* FROM " unnest_text() " CROSS JOIN LATERAL (" s ") q"
    if (!match(s, /[ \n]WHERE /))
        return ""
    return substr(s, 1, RSTART) (verb == "UPDATE" ? "FROM " : "USING ") unnest_text() substr(s, RSTART)
}

# The text for an engine; "" if it cannot be written.
function in_engine(engine, s,    is_each, once)
{
    is_each = sub(/^each /, "", s)
    once = sub(/^INSERT ONCE /, engine == "mysql" ? "INSERT IGNORE " : "INSERT ", s)
    if (engine == "sqlite")
        gsub(/[ \n]+FOR UPDATE( SKIP LOCKED)?/, "", s)
    if (engine != "pg")
        gsub(/pawl\./, "pawl_", s)
    if (is_each && engine == "pg")
        s = each_in_pg(s)
    gsub(/rows\(/, engine == "pg" ? "SELECT * FROM unnest(" : engine == "mysql" ? "VALUES rows(" : "VALUES (", s)
    s = each_match(engine, s, "\\$[0-9]+:[a-z]+(\\[\\])?", "value")
    if (is_each && engine == "mysql")
        s = "each{" s "}"
    return s != "" && once && engine != "mysql" ? s "\nON CONFLICT DO NOTHING" : s
}
