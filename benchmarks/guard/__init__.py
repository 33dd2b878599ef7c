"""Compare kernels with frozen loops in the same process; a kernel is slower if its ratio grows by 30 %."""
