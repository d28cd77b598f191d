/* Prints the table of results. */

#ifndef REPORT_H
#define REPORT_H

#include "measure.h"
#include "options.h"
#include "subject.h"

/* Prints a line for each cache: the medians of its rounds. `account` has all subjects of the first
 * round, then all of the second, and so on. */
void report(const struct options *options, const struct subject *subject, unsigned subjects,
            const struct account *account);

#endif
