/*
 * wallet_fixture.h - money moves between wallets while clients hang up and ask twice; whoever uses
 * this breaks something meanwhile.
 *
 * Each wallet is a key, its balance the key's state. Every client keeps a ledger of what it was
 * told took effect; in the end every balance is the sum of these ledgers, what was paid in is all
 * there is, and the calls of each wallet ran one after another. The server is server_process.h's,
 * which the user starts and keeps alive.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef WALLET_FIXTURE_H
#define WALLET_FIXTURE_H

#include "server_process.h"

/* Let the clients loose on the case's database. */
void wallet_begin(const void *param, uint64_t seed);
/* Let them come to their ends, and check everything. The server must be up; it is stopped. */
void wallet_end(const void *param);
/* Answers that did not come. */
int wallet_lost(void);
/* A number from the environment. */
int64_t wallet_setting(const char *name, int64_t otherwise);

#endif
