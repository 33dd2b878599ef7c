"""Our kernels beside frozen ones in the same process: a ratio that grows by 30 % is a kernel that became slower."""
