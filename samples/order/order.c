/*
 * order - a workflow that undoes what it did: goods are reserved, an account is charged, and when
 * the parcel is not shipped in time both are taken back.
 *
 * Stock and accounts are tables of the application. Each step changes them with pawl_sql(), which
 * commits together with the fact that the step has ended: a step that ended never runs again, and
 * one that did not has changed nothing, whatever happens to the process.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is ordered; read from the input again whenever the handler runs. */
struct order {
    const char *item, *account;
    int64_t n, cents;
};

static struct pawl_value text(const char *s)
{
    return (struct pawl_value){ .kind = PAWL_V_TEXT, .data = s, .len = strlen(s) };
}

static struct pawl_value number(int64_t n)
{
    return (struct pawl_value){ .kind = PAWL_V_INT, .i = n };
}

/* Take `n` of `name` out of a row, if there are so many; below 0 puts them back. *out is false if
 * there were not. */
static int take(struct pawl_call *c, const char *sql, const char *name, int64_t n, bool *out)
{
    struct pawl_err err;
    const struct pawl_rows *rows;
    struct pawl_value v[] = { number(n), text(name), number(n) };
    if (pawl_sql(c, sql, v, 3, &rows, &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    *out = rows->changed == 1;
    return 0;
}

#define TAKE_GOODS "UPDATE order_stock SET n = n - ? WHERE item = ? AND n >= ?"
#define TAKE_MONEY "UPDATE order_account SET cents = cents - ? WHERE name = ? AND cents >= ?"

/* ---- Steps ----------------------------------------------------------------------------------- */

static int reserve(struct pawl_call *c, void *arg)
{
    const struct order *o = arg;
    bool taken = false;
    int bad = take(c, TAKE_GOODS, o->item, o->n, &taken);
    return bad || taken ? bad : pawl_refuse(c, "not enough of \"%s\" in stock", o->item);
}

static int release(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    const struct order *o = arg;
    bool done;
    (void)result;
    /* What a step changes with SQL commits with its result: without a result it did not happen. */
    return known == PAWL_STEP_UNKNOWN ? 0 : take(c, TAKE_GOODS, o->item, -o->n, &done);
}

static int charge(struct pawl_call *c, void *arg)
{
    const struct order *o = arg;
    bool taken = false;
    int bad = take(c, TAKE_MONEY, o->account, o->cents, &taken);
    if (bad)
        return bad;
    return taken ? pawl_reply_json(c, "{\"paid\":%" PRId64 "}", o->cents)
                 : pawl_refuse(c, "account \"%s\" has too little money", o->account);
}

static int refund(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    const struct order *o = arg;
    bool done;
    (void)result;
    return known == PAWL_STEP_UNKNOWN ? 0 : take(c, TAKE_MONEY, o->account, -o->cents, &done);
}

/* The letter is a call of its own: accepted with this step, once, and delivered whenever it may. */
static int send_mail(struct pawl_call *c, void *arg)
{
    struct pawl_err err;
    struct pawl_spec spec = { PAWL_SPEC_INIT, .type = "order", .method = "mail" };
    spec.input = pawl_input(c);
    (void)arg;
    return pawl_send(c, &spec, &err) == PAWL_OK ? 0 : pawl_fail(c, "%s", err.text);
}

/* ---- order.run ------------------------------------------------------------------------------- */

static int read_order(struct pawl_call *c, struct order *o)
{
    if (pawl_input_get_text(c, "item", &o->item) || pawl_input_get_text(c, "account", &o->account))
        return pawl_refuse(c, "members \"item\" and \"account\" must be texts");
    if (pawl_input_get_int(c, "n", &o->n) || pawl_input_get_int(c, "cents", &o->cents) ||
        o->n <= 0 || o->cents <= 0)
        return pawl_refuse(c, "members \"n\" and \"cents\" must be whole numbers above 0");
    return 0;
}

/* order.run {"item", "n", "account", "cents"}: with "ship_within" and "cool_off" in seconds. */
static int order(struct pawl_call *c)
{
    struct order o;
    struct pawl_data paid;
    int64_t within = 7 * 24 * 3600, cool_off = 3600;
    int bad = read_order(c, &o);
    if (bad)
        return bad;
    pawl_input_get_int(c, "ship_within", &within);
    pawl_input_get_int(c, "cool_off", &cool_off);
    if (pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "reserve", .run = reserve,
                                       .undo = release, .arg = &o, .arg_size = sizeof o },
                  NULL) ||
        pawl_step(c,
                  &(struct pawl_step){ PAWL_STEP_INIT, .name = "charge", .run = charge,
                                       .undo = refund, .arg = &o, .arg_size = sizeof o },
                  &paid))
        return 0; /* suspended or failed: what is returned means nothing then */
    pawl_publish(c, "state", PAWL_TEXT("\"paid\""));
    switch (pawl_step_signal(c, "shipped", within * PAWL_SECOND, NULL)) {
    case 0:
        break;
    case PAWL_STEP_TIMEOUT:
        return pawl_refuse(c, "not shipped in time"); /* undoes charge, then reserve */
    default:
        return 0;
    }
    if (pawl_step_sleep(c, "cool-off", cool_off * PAWL_SECOND) ||
        pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "mail", .run = send_mail }, NULL))
        return 0;
    return pawl_reply(c, paid);
}

/* ---- The shop -------------------------------------------------------------------------------- */

static int mail(struct pawl_call *c)
{
    return pawl_reply_text(c, "sent");
}

/* order.shop {"item", "n", "account", "cents"}: there is so much of it. */
static int shop(struct pawl_call *c)
{
    struct order o;
    struct pawl_err err;
    int bad = read_order(c, &o);
    if (bad)
        return bad;
    struct pawl_value stock[] = { text(o.item), number(o.n) };
    struct pawl_value account[] = { text(o.account), number(o.cents) };
    if (pawl_sql(c, "INSERT INTO order_stock VALUES (?, ?)", stock, 2, NULL, &err) != PAWL_OK ||
        pawl_sql(c, "INSERT INTO order_account VALUES (?, ?)", account, 2, NULL, &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    return 0;
}

/* order.books: what is there in all. */
static int books(struct pawl_call *c)
{
    struct pawl_err err;
    const struct pawl_rows *goods, *money;
    if (pawl_sql(c, "SELECT n FROM order_stock", NULL, 0, &goods, &err) != PAWL_OK ||
        pawl_sql(c, "SELECT cents FROM order_account", NULL, 0, &money, &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    int64_t n = 0, cents = 0;
    for (size_t i = 0; i < goods->n; i++)
        n += goods->v[i].i;
    for (size_t i = 0; i < money->n; i++)
        cents += money->v[i].i;
    return pawl_reply_json(c, "{\"n\":%" PRId64 ",\"cents\":%" PRId64 "}", n, cents);
}

PAWL_MODULE(m)
{
    pawl_module_version(m, "1");
    if (pawl_prepare(m, "CREATE TABLE IF NOT EXISTS order_stock (item VARCHAR(100) PRIMARY KEY, "
                        "n BIGINT NOT NULL)") != PAWL_OK ||
        pawl_prepare(m, "CREATE TABLE IF NOT EXISTS order_account (name VARCHAR(100) PRIMARY KEY, "
                        "cents BIGINT NOT NULL)") != PAWL_OK ||
        pawl_on(m, "order", "run", order) != PAWL_OK ||
        pawl_on(m, "order", "mail", mail) != PAWL_OK ||
        pawl_on(m, "order", "shop", shop) != PAWL_OK)
        return;
    pawl_on(m, "order", "books", books);
}
