"""Files beside a log that say more of its run: configurations, hyper-parameters, folder names."""
