/* The table that a run ends with. */

#ifndef REPORT_H
#define REPORT_H

#include "measure.h"
#include "options.h"
#include "subject.h"

/* Prints a line a cache: the median of its rounds. `account` has the subjects of the first round,
 * then those of the second, and so on. */
void report(const struct options *options, const struct subject *subject, unsigned subjects,
            const struct account *account);

#endif
