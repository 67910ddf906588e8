/*
 * url.c - no URL is shown with its password, whatever the password contains.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "check.h"

static const char *safe(const char *url)
{
    static char out[512];
    url_safe(url, out, sizeof(out));
    return out;
}

TEST(urls_without_secrets_stay_as_they_are)
{
    EQ_STR(safe("sqlite:pawl.db"), "sqlite:pawl.db");
    EQ_STR(safe("sqlite:/tmp/a@b:c.db"), "sqlite:/tmp/a@b:c.db");
    EQ_STR(safe("mem:x"), "mem:x");
    EQ_STR(safe("postgres://ann@host:5432/db?sslmode=require"),
           "postgres://ann@host:5432/db?sslmode=require");
    EQ_STR(safe(""), "");
}

TEST(the_password_is_hidden)
{
    EQ_STR(safe("postgres://ann:secret@host:5432/db"), "postgres://ann:***@host:5432/db");
    EQ_STR(safe("mysql://:secret@host/db"), "mysql://:***@host/db");
    EQ_STR(safe("postgres://ann:@host/db"), "postgres://ann:***@host/db");
}

TEST(a_careless_password_is_hidden_whole)
{
    EQ_STR(safe("postgres://ann:se/cr@e?t#@host/db"), "postgres://ann:***@host/db");
    EQ_STR(safe("postgres://ann:a:b@host/db"), "postgres://ann:***@host/db");
}

TEST(secret_parameters_are_hidden)
{
    EQ_STR(safe("postgres://h/db?user=ann&password=secret&x=1"),
           "postgres://h/db?user=ann&password=***&x=1");
    EQ_STR(safe("postgres://h/db?PASSWORD=secret"), "postgres://h/db?PASSWORD=***");
    EQ_STR(safe("host=h password='a b c' dbname=d"), "host=h password=*** dbname=d");
    EQ_STR(safe("password='a b"), "password=***");
    EQ_STR(safe("mysql://h/db?token=t;pwd=p;passwd=q;secret=r;sslpassword=s"),
           "mysql://h/db?token=***;pwd=***;passwd=***;secret=***;sslpassword=***");
    EQ_STR(safe("postgres://h/db?nopassword=1"), "postgres://h/db?nopassword=1");
}

/* Found by test/fuzz/url.c. */
TEST(a_careless_parameter_is_hidden_whole)
{
    EQ_STR(safe("postgres://h/db?user=ann&password=a:b@c&x=1"),
           "postgres://h/db?user=ann&password=***&x=1");
    EQ_STR(safe("postgres://h:5432/db?password=a@b"), "postgres://h:***");
    EQ_STR(safe("postgres://h/db?password=a;b"), "postgres://h/db?password=***");
    EQ_STR(safe("postgres://h/db?password='a'b c&x=1"), "postgres://h/db?password=***&x=1");
    EQ_STR(safe("host=h password=a&b;c dbname=d"), "host=h password=*** dbname=d");
    EQ_STR(safe("password='a\\'b c' dbname=d"), "password=*** dbname=d");
    EQ_STR(safe("host=h\tpassword = secret dbname=d"), "host=h\tpassword = *** dbname=d");
    EQ_STR(safe("password=a://b host=h"), "password=***");
}

TEST(a_long_url_is_cut)
{
    char out[8];
    url_safe("sqlite:pawl.db", out, sizeof(out));
    EQ_STR(out, "sqlite:");
}
