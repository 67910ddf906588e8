# bench-report.awk - the tables of tools/bench-report.sh: reads results, writes Markdown and the input of gnuplot.
#
# Variables: dir (where NAME.dat and NAME.gp go) and plots (the path of the pictures for gnuplot). A ratio is taken
# within a round, because the machine's speed changes over time; the median of the rounds' ratios is shown. Written for
# mawk: no function here needs gawk.
#
# SPDX-License-Identifier: Apache-2.0

function row_name(row, title, group, label) {
    rows[++row_count] = row
    title_of[row] = title
    group_of[row] = group
    label_of[row] = label
}

function system_name(name, title, colour) {
    systems[++system_count] = name
    shown[name] = title
    colour_of[name] = colour
}

function goal(row, kind, other, sign, bound, text) {
    goals++
    goal_row[goals] = row
    goal_kind[goals] = kind
    goal_other[goals] = other
    goal_sign[goals] = sign
    goal_bound[goals] = bound
    goal_text[goals] = text
}

BEGIN {
    FS = "\t"
    row_name("enqueue_batch", "submit, batches of 1,000", "enqueue", "batches of 1,000")
    row_name("enqueue_64", "submit one by one, 64 clients", "enqueue", "one by one, 64 clients")
    row_name("drain", "drain a backlog of no-ops", "drain", "drain")
    row_name("latency_p50", "one call on an idle system, p50", "latency", "p50")
    row_name("latency_p99", "one call on an idle system, p99", "latency", "p99")
    row_name("http_1", "durable call over HTTP, 1 connection", "http", "1 connection")
    row_name("http_64", "durable call over HTTP, 64 connections", "http", "64 connections")
    row_name("http_1_p50", "its p50, 1 connection", "http-latency", "1 connection")
    row_name("http_64_p50", "its p50, 64 connections", "http-latency", "64 connections")
    row_name("hot_key", "64 callers on one key", "keys", "one key")
    row_name("keys_10k", "64 callers on 10,000 keys", "keys", "10,000 keys")
    row_name("backlog_1k", "drain rate, 1,000 wait", "backlog", "1,000")
    row_name("backlog_100k", "drain rate, 100,000 wait", "backlog", "100,000")
    row_name("backlog_1m", "drain rate, 1,000,000 wait", "backlog", "1,000,000")
    row_name("held_before", "submit and complete, undisturbed", "held", "undisturbed")
    row_name("held_after", "the same beside a held snapshot", "held", "snapshot held")
    row_name("light_idle_p99", "light queue, all else idle, p99", "light", "all else idle")
    row_name("light_backlog_p99", "light queue beside a full one, p99", "light", "beside a full queue")
    row_name("light_priority_p99", "light queue beside a full one, by priority, p99", "light", "the same, by priority")
    row_name("light_unserved_p99", "light queue beside calls nobody serves, p99", "light", "beside unserved calls")
    row_name("flow10", "steps of 10-step workflows, 64 at a time", "workflows", "10 steps: steps")
    row_name("flow1", "1-step workflows, 64 at a time", "workflows", "1 step")
    row_name("cpu_per_call", "CPU a call", "cost", "CPU")
    row_name("wal_per_call", "WAL a call", "cost", "WAL")
    row_name("statements_per_call", "statements a call", "cost", "statements")
    row_name("cpu_per_http_call", "CPU a call over HTTP", "cost", "CPU")
    row_name("wal_per_http_call", "WAL a call over HTTP", "cost", "WAL")
    row_name("statements_per_http_call", "statements a call over HTTP", "cost", "statements")

    system_name("pawl", "Pawl", "#1b6ca8")
    system_name("floor", "floor", "#8c8c8c")
    system_name("pawl-sqlite", "Pawl on SQLite", "#5fa8d3")
    system_name("pawl-mariadb", "Pawl on MariaDB", "#9ccfe7")
    system_name("floor-mariadb", "floor on MariaDB", "#bbbbbb")
    system_name("graphile-worker", "graphile-worker", "#d1495b")
    system_name("pg-boss", "pg-boss", "#edae49")
    system_name("bullmq", "BullMQ", "#66a182")
    system_name("dbos", "DBOS", "#7d5ba6")
    system_name("restate", "Restate", "#2e4057")

    goal("drain", "ratio", "graphile-worker", ">=", 5, "drain beside graphile-worker")
    goal("drain", "ratio", "floor", ">=", 0.8, "drain beside the floor")
    goal("enqueue_64", "best", "", ">=", 3, "submit one by one, 64 clients, beside the best peer")
    goal("latency_p50", "value", "", "<", 1000, "one call on an idle system, p50")
    goal("http_64", "ratio", "restate", ">=", 25, "HTTP, 64 connections, beside Restate")
    goal("http_1_p50", "ratio", "restate", "<=", 0.25, "HTTP, 1 connection, p50 beside Restate")
    goal("hot_key", "ratio", "restate", ">=", 20, "one key beside Restate's virtual object")
    goal("backlog_100k", "rows", "backlog_1k", ">=", 0.9, "drain rate, 100,000 beside 1,000 waiting")
    goal("backlog_1m", "rows", "backlog_1k", ">=", 0.9, "drain rate, 1,000,000 beside 1,000 waiting")
    goal("held_after", "rows", "held_before", ">=", 0.95, "a held snapshot beside none")
    goal("light_backlog_p99", "rows", "light_idle_p99", "<=", 2, "light queue's p99 beside a full queue")
    goal("light_unserved_p99", "rows", "light_idle_p99", "<=", 2, "light queue's p99 beside unserved calls")
    goal("flow10", "ratio", "dbos", ">=", 20, "steps of workflows beside DBOS")
    goal("flow10", "ratio", "restate", ">=", 5, "steps of workflows beside Restate")
    goal("flow10", "rate", "pawl-sqlite", ">=", 5000, "steps of workflows on SQLite, 16 slots")
    goal("flow1", "ratio", "dbos", ">=", 20, "1-step workflows beside DBOS")
}

$1 == 0 && $2 == "about" { about[$3] = $4; next }
$1 == 0 && $2 == "config" { config[$3] = $4; next }
$1 == 0 && $2 == "skip" {
    if (!(($3, $5) in why_seen)) {
        why_seen[$3, $5] = 1
        why_rows[$3, $5] = $4
        why_system[++whys] = $3
        why_text[whys] = $5
    } else if (index(" " why_rows[$3, $5] ",", " " $4 ",") == 0)
        why_rows[$3, $5] = why_rows[$3, $5] ", " $4
    next
}
$1 > 0 && NF >= 5 {
    value[$1, $2, $3] = $4
    unit_of[$2] = $5
    if (!($2 in title_of))
        row_name($2, $2, "", $2)
    if (!($3 in shown))
        system_name($3, $3, "#444444")
    has_system[$3] = 1
    has_row[$2] = 1
    if ($1 > rounds)
        rounds = $1
}

# The systems do different work here, so each is compared with itself.
function alone(row) {
    return group_of[row] ~ /^(backlog|held|light)$/
}

# The median of list[1..n]; with an even count the mean of the two in the middle.
function median_of(list, n, i, j, t) {
    for (i = 2; i <= n; i++) {
        t = list[i]
        for (j = i - 1; j >= 1 && list[j] > t; j--)
            list[j + 1] = list[j]
        list[j + 1] = t
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

function median(row, who, r, n, list) {
    for (r = 1; r <= rounds; r++)
        if ((r, row, who) in value)
            list[++n] = value[r, row, who] + 0
    return n ? median_of(list, n) : ""
}

# The median of the rounds' ratios of one figure to another; empty when no round has both.
function ratio(row, who, other_row, other, r, n, list) {
    for (r = 1; r <= rounds; r++)
        if (((r, row, who) in value) && ((r, other_row, other) in value) && value[r, other_row, other] + 0 > 0)
            list[++n] = value[r, row, who] / value[r, other_row, other]
    return n ? median_of(list, n) : ""
}

# Pawl compared with the best in each round: the best of the peers, without the plain-SQL figures.
function best_ratio(row, r, n, list, s, best) {
    for (r = 1; r <= rounds; r++) {
        best = 0
        for (s = 1; s <= system_count; s++)
            if (systems[s] !~ /^(pawl|floor)/ && value[r, row, systems[s]] + 0 > best)
                best = value[r, row, systems[s]] + 0
        if (((r, row, "pawl") in value) && best > 0)
            list[++n] = value[r, row, "pawl"] / best
    }
    return n ? median_of(list, n) : ""
}

function thousands(x, text, out) {
    text = sprintf("%.0f", x)
    while (length(text) > 3) {
        out = "," substr(text, length(text) - 2) out
        text = substr(text, 1, length(text) - 3)
    }
    return text out
}

function figure(x, unit) {
    if (x == "")
        return ""
    if (unit == "1/s")
        return (x < 100 ? sprintf("%.3g", x) : thousands(x)) "/s"
    if (unit == "us")
        return x < 1000 ? sprintf("%.0f us", x) : sprintf("%.3g ms", x / 1000)
    if (unit == "bytes")
        return thousands(x) " B"
    return sprintf("%.3g", x)
}

function times(x) {
    return x == "" ? "" : x >= 10 ? thousands(x) : sprintf("%.2f", x)
}

function measured(g) {
    if (goal_kind[g] == "value")
        return median(goal_row[g], "pawl")
    if (goal_kind[g] == "rate")
        return median(goal_row[g], goal_other[g])
    if (goal_kind[g] == "best")
        return best_ratio(goal_row[g])
    if (goal_kind[g] == "rows")
        return ratio(goal_row[g], "pawl", goal_other[g], "pawl")
    return ratio(goal_row[g], "pawl", goal_row[g], goal_other[g])
}

function verdict(x, sign, bound) {
    if (x == "")
        return "not measured"
    if (sign == ">=" ? x >= bound : sign == "<=" ? x <= bound : x < bound)
        return "met"
    return "**not met**"
}

function print_goals(g, x, unit) {
    print "| goal | | bound | |"
    print "|---|---|---|---|"
    for (g = 1; g <= goals; g++) {
        x = measured(g)
        unit = goal_kind[g] == "value" ? "us" : goal_kind[g] == "rate" ? "1/s" : ""
        print "| " goal_text[g] " | " (unit ? figure(x, unit) : times(x)) " | " goal_sign[g] \
            " " (unit ? figure(goal_bound[g], unit) : goal_bound[g]) " | " \
            verdict(x, goal_sign[g], goal_bound[g]) " |"
    }
    print ""
}

function print_head(first, from, s, line, rule) {
    line = "| " first " |"
    rule = "|---|"
    for (s = from; s <= system_count; s++)
        if (systems[s] in has_system) {
            line = line " " shown[systems[s]] " |"
            rule = rule "---|"
        }
    print line
    print rule
}

function print_figures(i, s, line) {
    print_head(rounds == 1 ? "one round" : "median of " rounds " rounds", 1)
    for (i = 1; i <= row_count; i++)
        if (rows[i] in has_row) {
            line = "| " title_of[rows[i]] " |"
            for (s = 1; s <= system_count; s++)
                if (systems[s] in has_system)
                    line = line " " figure(median(rows[i], systems[s]), unit_of[rows[i]]) " |"
            print line
            if (rows[i] == "held_after")
                print_share("what is left of it", "held_after", "held_before")
        }
    print ""
}

function print_share(title, row, base, s, line) {
    line = "| " title " |"
    for (s = 1; s <= system_count; s++)
        if (systems[s] in has_system)
            line = line " " times(ratio(row, systems[s], base, systems[s])) " |"
    print line
}

function print_ratios(i, s, line, any, x, less) {
    if (!("pawl" in has_system))
        return
    print_head("Pawl's figure divided by that of", 2)
    for (i = 1; i <= row_count; i++) {
        if (alone(rows[i]))
            continue
        less = unit_of[rows[i]] == "us" || group_of[rows[i]] == "cost"
        line = "| " title_of[rows[i]] (less ? " (less is better)" : "") " |"
        any = 0
        for (s = 2; s <= system_count; s++)
            if (systems[s] in has_system) {
                x = ratio(rows[i], "pawl", rows[i], systems[s])
                any += x != ""
                line = line " " times(x) " |"
            }
        if (any)
            print line
    }
    print ""
}

function print_about(line) {
    line = "One run of `make bench`"
    if ("when" in about)
        line = line ", " about["when"]
    line = line ": " about["cores"] " cores"
    if (about["cpu"] != "")
        line = line " (" about["cpu"] ")"
    line = line ", " about["memory"] " of memory, " about["kernel"]
    line = line ", a synced write of one page takes " about["fsync"]
    line = line ". Load average at the start: " about["load"] ". " rounds (rounds == 1 ? " round" : " rounds")
    if (about["form"] != "")
        line = line " in the " about["form"] " form"
    print line " (" about["settings"] "), in alternating order;"
    line = "one program at a time, each in a database of its own. PostgreSQL " about["postgresql"]
    print line (about["redis"] != "" ? ", Redis " about["redis"] : "") "."
    print "**fsync is on everywhere**: PostgreSQL has every setting as shipped but `max_connections`, Redis has"
    print "`appendfsync always`, Restate syncs its log as shipped. Callers, workers and servers share the cores."
    print ""
}

function print_notes(s, i) {
    print "Versions and settings:"
    print ""
    for (s = 1; s <= system_count; s++)
        if (systems[s] in config)
            print "- **" shown[systems[s]] "**: " config[systems[s]]
    print ""
    for (i = 1; i <= whys; i++)
        if (why_text[i] != "measured for Pawl alone") {
            if (!any_why++) {
                print "Rows without a figure:"
                print ""
            }
            print "- " shown[why_system[i]] ", " why_rows[why_system[i], why_text[i]] ": " why_text[i]
        }
    if (any_why)
        print ""
}

# ---- Pictures -----------------------------------------------------------------------------------

function power_below(x, p) {
    p = 1
    while (p * 10 <= x)
        p *= 10
    while (p > x)
        p /= 10
    return p
}

function plot(group, title, axis, i, s, x, line, low, any, columns, file, data, clause, lines) {
    for (s = 1; s <= system_count; s++) {
        any = 0
        for (i = 1; i <= row_count; i++)
            if (group_of[rows[i]] == group && (x = median(rows[i], systems[s])) != "" && x > 0) {
                any = 1
                if (low == "" || x < low)
                    low = x
            }
        if (any)
            columns[++data] = systems[s]
    }
    if (!data)
        return
    file = dir "/" group ".dat"
    for (i = 1; i <= row_count; i++)
        if (group_of[rows[i]] == group && (rows[i] in has_row)) {
            line = "\"" label_of[rows[i]] "\""
            for (s = 1; s <= data; s++) {
                x = median(rows[i], columns[s])
                line = line " " (x == "" || x <= 0 ? "?" : x)
            }
            print line >file
            lines++
        }
    close(file)
    for (s = 1; s <= data; s++)
        clause = clause (s > 1 ? ", \\\n     " : "plot ") "'" group ".dat' using " s + 1 (s == 1 ? ":xtic(1)" : "") \
            " title '" shown[columns[s]] "' linecolor rgb '" colour_of[columns[s]] "'"
    file = dir "/" group ".gp"
    print "set terminal svg size 860,380 dynamic font 'sans-serif,13' background '#ffffff' name 'pawl'" >file
    print "set output '" plots "/" group ".svg'" >file
    print "set title '" title "'\nset ylabel '" axis "'\nset logscale y\nset yrange [" power_below(low) / 2 ":*]" >file
    print "set format y '%.0s%c'\nset style data histograms\nset style histogram clustered gap 1" >file
    print "set style fill solid 0.9 noborder\nset boxwidth 0.9\nset datafile missing '?'" >file
    print "set grid ytics lc rgb '#dddddd'" >file
    print "set key outside right top noenhanced\nset border 3\nset tics nomirror" >file
    print "set xrange [-0.6:" lines - 0.4 "]" >file
    print clause >file
    close(file)
    pictures[++picture_count] = group
    picture_title[group] = title
}

function print_pictures(i) {
    plot("enqueue", "Submitting (more is better)", "calls a second")
    plot("drain", "Draining a backlog of no-ops (more is better)", "calls a second")
    plot("latency", "One call on an idle system (less is better)", "microseconds")
    plot("http", "Durable calls over HTTP (more is better)", "calls a second")
    plot("http-latency", "Durable calls over HTTP, p50 (less is better)", "microseconds")
    plot("keys", "64 callers on keys (more is better)", "calls a second")
    plot("backlog", "Drain rate by how many wait (more is better)", "calls a second")
    plot("held", "Beside a held snapshot (more is better)", "calls a second")
    plot("workflows", "Workflows of steps that do nothing (more is better)", "a second")
    plot("light", "The light queue, p99 (less is better)", "microseconds")
    for (i = 1; i <= picture_count; i++)
        print "![" picture_title[pictures[i]] "](plots/" pictures[i] ".svg)"
    if (picture_count)
        print ""
}

END {
    print "## Side by side with the peers (`tools/bench-peers.sh`)"
    print ""
    print_about()
    print_goals()
    print_figures()
    print_ratios()
    print_pictures()
    print_notes()
}
