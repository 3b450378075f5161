"""Certificates: upper bounds on regret, and the evidence a pass gathers for them (docs/theory.md, section 6)."""
