/*
 * pg_cost.c - see pg_cost.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pg_cost.h"

#include <ctype.h>
#include <dirent.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct process {
    pid_t parent;
    double cpu_s;
    char name[32];
};

static bool process_read(pid_t pid, struct process *out)
{
    char path[64], line[1024];
    long parent = 0;
    unsigned long t[4] = { 0 };
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = 0;
    /* "pid (name) state parent ..."; the name may contain any character. */
    const char *open = strchr(line, '('), *end = strrchr(line, ')');
    if (!open || !end ||
        sscanf(end + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &parent,
               &t[0], &t[1], &t[2], &t[3]) != 5)
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(end - open - 1), open + 1);
    out->parent = (pid_t)parent;
    out->cpu_s = (double)(t[0] + t[1] + t[2] + t[3]) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

double pg_cost_process(pid_t pid)
{
    struct process p;
    return process_read(pid, &p) ? p.cpu_s : 0;
}

/* Processes that have ended are included in the postmaster's own figure. */
static double family(pid_t postmaster)
{
    double sum = pg_cost_process(postmaster);
    DIR *d = opendir("/proc");
    struct process p;
    for (struct dirent *e; d && (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]) &&
            process_read((pid_t)strtol(e->d_name, NULL, 10), &p) && p.parent == postmaster)
            sum += p.cpu_s;
    if (d)
        closedir(d);
    return sum;
}

/* The process id of the connection's postmaster; 0: it is not on this machine. */
static pid_t postmaster_of(PGconn *db)
{
    struct process p;
    return PQstatus(db) == CONNECTION_OK && process_read(PQbackendPID(db), &p) &&
                   strncmp(p.name, "postgres", 8) == 0
               ? p.parent
               : 0;
}

static int64_t number(PGconn *db, const char *sql)
{
    PGresult *r = PQexec(db, sql);
    int64_t v = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1
                    ? strtoll(PQgetvalue(r, 0, 0), NULL, 10)
                    : -1;
    PQclear(r);
    return v;
}

bool pg_cost_read(const char *url, struct pg_cost *out)
{
    PGconn *db = PQconnectdb(url);
    pid_t postmaster = postmaster_of(db);
    *out = (struct pg_cost){ 0 };
    if (postmaster) {
        out->cpu_s = family(postmaster);
        out->wal = number(db, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint");
        out->transactions = number(db, "SELECT xact_commit + xact_rollback FROM pg_stat_database "
                                       "WHERE datname = current_database()");
    }
    PQfinish(db);
    return postmaster && out->wal >= 0 && out->transactions >= 0;
}

bool pg_cost_log(const char *url, struct pg_log *out)
{
    char fd[64];
    struct stat st;
    *out = (struct pg_log){ 0 };
    snprintf(out->url, sizeof out->url,
             "%.200s%coptions=-c%%20log_min_duration_statement%%3D0%%20"
             "-c%%20log_parameter_max_length%%3D0",
             url, strchr(url, '?') ? '&' : '?');
    PGconn *db = PQconnectdb(out->url);
    pid_t postmaster = postmaster_of(db);
    PQfinish(db);
    snprintf(fd, sizeof fd, "/proc/%d/fd/2", (int)postmaster);
    if (!postmaster || readlink(fd, out->path, sizeof out->path - 1) <= 0 ||
        stat(out->path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    pg_log_skip(out);
    return true;
}
