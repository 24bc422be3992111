"""Fuzzers: whatever a stranger sends, the readers answer with a result or an error of ours.

python -m tools.fuzz all --minutes 10 --seed 7
python -m tools.fuzz png --count 100000
python -m tools.fuzz png --replay found-png-1a2b3c4d
python -m tools.fuzz control                a reader with faults: all must be found

Found is: any error that is not an `InputError`, a crash, more than 1 s of the processor, more than
256 MB. Each is written to a file `found-…` and can be replayed. With atheris installed,
`--atheris` lets coverage lead instead of outcomes (`pip install atheris`; wheels for Linux).
"""
