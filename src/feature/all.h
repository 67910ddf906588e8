/*
 * all.h - every feature, for those who open the database (lib, cli).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FEATURE_ALL_H
#define FEATURE_ALL_H

#include "store/feature.h"

/* All features of this program, for store_conf.features. *out_n: how many. */
const struct feature *const *features_all(size_t *out_n);

#endif
