/* SPDX-License-Identifier: Apache-2.0 */
/* Constant parts of bound trees worked out while typing, and the sets of in tests brought to one type. */
#ifndef GAR_EXPR_FOLD_PRIV_H
#define GAR_EXPR_FOLD_PRIV_H

#include "expr/bind_priv.h"

/* Replaces *node by its value if nothing below it is a column. Errors: what evaluating it gives. */
GAR_MUST_USE enum gar_status gar_bound_fold(struct gar_binder *binder, struct gar_bound **node,
                                            struct gar_error *err);

/* Replaces every constant part below *node; parts whose evaluation fails stay. */
GAR_MUST_USE enum gar_status gar_bound_fold_parts(struct gar_binder *binder,
                                                  struct gar_bound **node, struct gar_error *err);

/* *type is the tested value's type on entry and the type to compare in on return; *out gets the set's values in
 * that type without nulls (values that the type cannot hold are left out, nothing equals them). Owns: caller unrefs *out. */
GAR_MUST_USE enum gar_status gar_fold_set(struct gar_column *set, struct gar_type *type,
                                          struct gar_column **out, struct gar_error *err);

#endif
