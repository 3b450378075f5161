"""What `make run` does: learn a real stream in one pass and print risk, mistakes and the regret certificate."""

import math

import rue

X, y = rue.census()
share = float((y > 0).mean())
constant = -share * math.log(share) - (1 - share) * math.log(1 - share)

print(f"{len(y):,} people of the 1994 US census, {X.shape[1]} features: is their income above 50,000 dollars?\n")
run = rue.learn(X, y)
print(f"learner      {run.learner!r}")
print(f"examples     {run.examples:,}, each predicted before it was learnt, in {run.seconds:.2f} s with compilation")
print(f"risk         {run.risk:.4f}, the mean logistic loss (the best constant answer: {constant:.4f})")
print(f"mistakes     {run.mistakes:,}, or {run.mistakes / run.examples:.1%} (always answering no: {share:.1%})\n")
print("certificate  D1, proved in the same pass, with no assumption on the data:")
for radius in (1, 3, 10):
    print(f"  · {run.certificate(radius)}")
