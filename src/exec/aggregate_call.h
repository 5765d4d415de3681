/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate calls of a plan as the kernels want them. */
#ifndef GAR_EXEC_AGGREGATE_CALL_H
#define GAR_EXEC_AGGREGATE_CALL_H

#include "expr/expr.h"
#include "kernels/aggregate.h"

struct gar_aggregate_call {
    struct gar_aggregate_spec spec;  /* without types */
    const struct gar_expr *argument; /* to compute for each row; borrowed; NULL: none */
    const struct gar_expr *second;
};

/* Kind and options of a call (maybe under aliases). Errors: GAR_ERR_VALUE for options that are no literals,
 * GAR_ERR_UNSUPPORTED for functions without a kernel. Owns: borrows from expr. */
GAR_MUST_USE enum gar_status gar_aggregate_call_read(const struct gar_expr *expr,
                                                     struct gar_aggregate_call *out,
                                                     struct gar_error *err);
/* The call's types, once those of its arguments are known. */
void gar_aggregate_call_set_types(struct gar_aggregate_spec *spec, struct gar_type argument,
                                  struct gar_type second, bool has_second, struct gar_type result);

#endif
