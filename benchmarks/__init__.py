"""Speed of rue as ratios against peers, in one process, best of several, compile time apart."""
