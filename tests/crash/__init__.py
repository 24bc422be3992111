"""Crash tests: a library is killed, starved and refused, and nothing may be lost.

python -m tests.crash kills --count 300
python -m tests.crash signals --count 20    SIGTERM and SIGINT at random moments of a painting
python -m tests.crash sweep
python -m tests.crash sweep --careless      the control: it must find faults
"""
