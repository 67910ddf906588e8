/*
 * service.h - what another HTTP service of this program shares with the API besides auth.h: which
 * bodies count as JSON, and errors in the one shape of the contract.
 *
 * Loop thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_SERVICE_H
#define API_SERVICE_H

#include "api/api.h"

/* Is the body's content type JSON, missing, or the form type that curl sends by default? */
bool body_is_json(const struct http_request *r);
/* Append {"error":{...}}; id may be absent. */
void front_add(struct buf *b, const struct pawl_err *err, struct bytes id);
/* Answer with this error. Afterwards the request must not be touched. */
void front_refuse(struct http_request *r, const struct pawl_err *err, struct bytes id);

#endif
