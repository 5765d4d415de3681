/* SPDX-License-Identifier: Apache-2.0 */
/* Vector kernels for any machine. */
#include <string.h>

#include "base/bits.h"
#include "kernels/civil_priv.h"
#include "kernels/vector_priv.h"

#define GAR_BODY_ISA   GAR_ISA_PORTABLE
#define GAR_BODY_TABLE gar_vector_kernels_portable
#include "kernels/vector_body.h"
