/*
 * check_main.c - main() for test programs that have none of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"

int main(int argc, char **argv)
{
    return check_run(argc, argv);
}
