"""Crash tests: a library is killed, starved and refused, and nothing may be lost.

python -m tools.crash kills --count 300
python -m tools.crash sweep
python -m tools.crash sweep --careless      the control: it must find faults
"""
