/*
 * cli_workflow.c - `pawl workflow` with a server.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "cli_fixture.h"
#include "cli_server.h"

/* Claims the one run there is; $l is its lease in the commands that follow. */
#define CLAIM                                                                                      \
    "l=$(curl -sS $u/v1/work/claim -d '{\"steps\":true}' -H 'Content-Type: application/json' | "   \
    "jq -r .lease); "
#define SEND(path, body)                                                                           \
    "curl -sS $u" path " -H 'Content-Type: application/json' -d \"{\\\"lease\\\":\\\"$l\\\"," body \
    "}\" >/dev/null"

TEST(a_run_from_its_start_to_its_end)
{
    serve("");
    EQ_INT(run("pawl submit order '{\"n\": 1}' --id o1"), 0);
    EQ_INT(run("pawl workflow show o1"), 3);
    EQ_INT(run("pawl workflow list"), 0);
    EQ_INT(run(CLAIM SEND("/v1/work/steps",
                          "\\\"id\\\":\\\"o1\\\",\\\"steps\\\":[{\\\"no\\\":1,\\\"name\\\":"
                          "\\\"charge\\\",\\\"kind\\\":\\\"run\\\",\\\"result\\\":7},{\\\"no\\\":2,"
                          "\\\"name\\\":\\\"shipped\\\",\\\"kind\\\":\\\"signal\\\",\\\"wait\\\":"
                          "{\\\"signals\\\":[\\\"shipped\\\"]}}]")),
           0);
    EQ_INT(run("pawl workflow list"), 0);
    HAS_STR(out, "id  workflow  status   step     waits for");
    HAS_STR(out, "o1  order     waiting  shipped  signal shipped");
    EQ_INT(run("pawl workflow list --status completed --json"), 0);
    EQ_STR(out, "{\"workflows\":[],\"next\":null}\n");
    EQ_INT(run("pawl workflow list --name order --json | jq -r '.workflows[].id'"), 0);
    EQ_STR(out, "o1\n");
    EQ_INT(run("pawl workflow show o1"), 0);
    HAS_STR(out, "status               waiting\n");
    HAS_STR(out, "waiting_for          signal shipped\n");
    HAS_STR(out, "1   charge   run     completed");
    EQ_INT(run("pawl workflow show o1 --json | jq -c '.steps[0].result'"), 0);
    EQ_STR(out, "7\n");
    EQ_INT(run("pawl workflow signal o1 shipped '{\"p\": 9}' --key k1"), 0);
    EQ_STR(out, "o1 signalled\n");
    EQ_INT(run("pawl workflow signal o1 shipped '{\"p\": 9}' --key k1"), 0);
    EQ_STR(out, "o1 signalled before\n");
    EQ_INT(run("pawl workflow signal o1 shipped 5 --key k1"), 10);
    EQ_INT(run("pawl workflow signal o1 other --json | jq -r .name"), 0);
    EQ_STR(out, "other\n");
    EQ_INT(run("pawl workflow cancel o1"), 0);
    EQ_STR(out, "o1 processing\n");
    EQ_INT(run("pawl workflow cancel o1 --no-compensation"), 0);
    EQ_STR(out, "o1 cancelled\n");
    EQ_INT(run("pawl workflow fork o1 --from shipped --id o2"), 0);
    EQ_STR(out, "o2 processing\n");
    EQ_INT(run("pawl workflow retry o1 --from charge"), 0);
    EQ_STR(out, "o1 processing\n");
    EQ_INT(run("pawl workflow retry o1"), 13);
}

TEST(a_signal_that_starts_and_a_value_that_is_shown)
{
    serve("");
    EQ_INT(run("pawl submit order --id o1 --signal shipped --signal-value '[9]' --signal-key k"),
           0);
    EQ_STR(out, "o1\n");
    EQ_INT(run("pawl submit order --id o1 --signal shipped --signal-value '[ 9 ]' --signal-key k"),
           0);
    EQ_INT(run("pawl submit order --id o1 --signal shipped --signal-value 8 --signal-key k"), 10);
    EQ_INT(run("pawl workflow published o1 state"), 3);
    EQ_INT(run(CLAIM SEND("/v1/work/steps",
                          "\\\"id\\\":\\\"o1\\\",\\\"publish\\\":{\\\"state\\\":\\\"paid\\\"},"
                          "\\\"steps\\\":[{\\\"no\\\":1,\\\"name\\\":\\\"a\\\",\\\"kind\\\":"
                          "\\\"run\\\",\\\"result\\\":1}]")),
           0);
    EQ_INT(run("pawl workflow published o1 state"), 0);
    EQ_STR(out, "\"paid\"\n");
    EQ_INT(run("pawl workflow show o1"), 0);
    HAS_STR(out, "published            {\"state\":\"paid\"}");
}

TEST(wrong_usage)
{
    static const struct {
        const char *line, *says;
    } bad[] = {
        { "pawl workflow", "list, show, published, signal, cancel, retry, fork or check" },
        { "pawl workflow published o1", "NAME is missing" },
        { "pawl submit order --signal-key k", "option --signal-key goes with --signal" },
        { "pawl submit order --signal s --signal-value x", "is not JSON" },
        { "pawl workflow shwo o1", "unknown subcommand \"shwo\"" },
        { "pawl workflow show", "ID is missing; usage: pawl workflow show ID" },
        { "pawl workflow show o1 o2", "unexpected argument \"o2\" of pawl workflow show" },
        { "pawl workflow signal o1", "NAME is missing" },
        { "pawl workflow fork o1", "option --from is missing" },
        { "pawl workflow show o1 --key k", "option --key cannot be used with pawl workflow show" },
        { "pawl workflow list --status pending", "status" },
        { "pawl workflow show ''", "ID" },
    };
    serve("");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (run(bad[i].line) == 0)
            FAIL("%s: exit code 0", bad[i].line);
        HAS_STR(err_out, bad[i].says);
    }
    EQ_INT(run("pawl workflow signal none x"), 3);
    EQ_INT(run("pawl workflow cancel none"), 3);
    EQ_INT(run("pawl completion bash"), 0);
    HAS_STR(out, "workflow");
}
