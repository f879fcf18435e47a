"""Lines that say how a run ended, whatever framework printed them."""
