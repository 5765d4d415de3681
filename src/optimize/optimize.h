/* SPDX-License-Identifier: Apache-2.0 */
/* Rules plan -> plan, each with a name that can be switched off. */
#ifndef GAR_OPTIMIZE_OPTIMIZE_H
#define GAR_OPTIMIZE_OPTIMIZE_H

#include "plan/plan.h"

int64_t gar_optimize_rule_count(void);
const char *gar_optimize_rule_name(int64_t i);

/* Is the text (NULL: none) a list of names of rules, with commas and blanks between? Errors: GAR_ERR_VALUE naming the word
 * and the rules that there are. */
GAR_MUST_USE enum gar_status gar_optimize_check_names(const char *names, struct gar_error *err);
/* Applies all rules but those named in disabled (a list as above, or NULL). fired, if given, gets the names of
 * the rules that changed something, comma-separated. Results of the plan stay equal. Threads: any; never blocks. */
GAR_MUST_USE enum gar_status gar_optimize(const struct gar_plan *plan, const char *disabled,
                                          struct gar_strbuf *fired, struct gar_plan **out,
                                          struct gar_error *err);

#endif
