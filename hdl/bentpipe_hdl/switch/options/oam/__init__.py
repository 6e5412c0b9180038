"""OAM flows: alarms, continuity checks, loopbacks (I.610)."""
