/*
 * zone_folder.h - folders of zone data, of which each case makes its own.
 *
 * They are relative to the folder of the case.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZONE_FOLDER_H
#define ZONE_FOLDER_H

/* Make a folder of zone data of this release in which Europe/London and Europe/Berlin are this many
 * hours ahead of UTC, all the year; and use a folder from now on. */
void zone_data(const char *dir, const char *release, int hours);
void use_zones(const char *dir);

#endif
