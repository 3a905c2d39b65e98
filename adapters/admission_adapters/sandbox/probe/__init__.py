"""The probe: tests every sandbox boundary on this machine with the launcher of real runs.

For every boundary a harmless program does what it must not, once inside and once as a plain subprocess under
the same user. Only what was refused inside and done outside counts: no control, no claim.
"""
