/*
 * wallet_fixture.h - clients move money between wallets, hang up and ask twice, while the test
 * breaks something.
 *
 * Each wallet is a key, and its balance is the object's state. Every client records what it was
 * told took effect. In the end every balance is the sum of these records, the total is what was
 * paid in, and the calls of each wallet ran one after another. The server is that of
 * server_process.h, which the test starts and keeps running.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WALLET_FIXTURE_H
#define WALLET_FIXTURE_H

#include "server_process.h"

/* Start the clients' threads on the case's database. */
void wallet_begin(const void *param, uint64_t seed);
/* Let the clients finish, and check everything. The server must be up; it is stopped. */
void wallet_end(const void *param);
/* How many answers did not arrive. */
int wallet_lost(void);
/* A number from the environment, or `otherwise` when it is not set. */
int64_t wallet_setting(const char *name, int64_t otherwise);

#endif
