"""Facts of nccl-tests and rccl-tests: printed tables and files of results; which operation they measured."""
