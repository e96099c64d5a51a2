"""placeholder"""
from __future__ import annotations
from collections.abc import Mapping
def child_environment(base: Mapping[str, str]) -> dict[str, str]:
    return {**base, "JE_ARROW_MALLOC_CONF": "background_thread:false", "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1","OMP_NUM_THREADS":"1","MKL_NUM_THREADS":"1","NUMEXPR_NUM_THREADS":"1"}
