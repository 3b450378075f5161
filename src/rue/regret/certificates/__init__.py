"""Certificates: upper bounds on regret, and the evidence a pass gathers for them (docs/theory.md, section 6).

- `evidence`: the sums of a pass, and what they prove together; D1 and D2 need no more than the ledger (`rue.ledger`);
- `witnesses`, `digest`: what proves more of any loss (D3);
- `curvature`: what proves everything of square loss (D4);
- `certificate`: the result, in numbers and words; `telling`: the radius to show where none was asked for;
- `certify`: `rue.certify`, for the predictions of any model.
"""
