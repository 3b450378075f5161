"""Outside experts: the promise of M1 at every row, the same bits however a stream is cut, and what is refused."""

import json
import math

import numpy as np
import pandas
import pytest

import rue
from commands import run as rue_command
from rue.learners.ensemble import Ensemble

NAMES = ("good", "noise")


def stream(n=1500, seed=0):
    """Rows with a product, labels, and two experts' probabilities: one nearly right, one of no use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = 2.0 * X[:, 0] * X[:, 1] + X[:, 2]
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-f)), 1.0, -1.0)
    return X, y, {"good": 1.0 / (1.0 + np.exp(-0.8 * f)), "noise": rng.random(n)}


def log_losses(chances, y):
    return -np.log(np.where(y > 0.0, chances, 1.0 - chances))


def reference(loss, rows, y):
    """Exponential weights over the columns of `rows`, as B12 has them, in ten lines; predictions and losses."""
    total, gaps, out = np.zeros(rows.shape[1]), 0.0, []
    for p, label in zip(rows, y, strict=True):
        eta = 1.0 if loss == "logistic" else math.log(rows.shape[1]) / gaps if gaps else math.inf
        behind = total - total.min()
        v = (behind == 0.0).astype(float) if math.isinf(eta) else np.exp(-eta * behind)
        v /= v.sum()
        if loss == "logistic":
            chance = v @ (1.0 / (1.0 + np.exp(-p)))
            out.append(math.log(chance / (1.0 - chance)))
            total += np.logaddexp(0.0, -label * p)
            continue
        out.append(v @ p)
        costs, own = (p - label) ** 2, (out[-1] - label) ** 2
        mix = costs[v > 0.0].min() if math.isinf(eta) else -math.log(v @ np.exp(-eta * costs)) / eta
        gaps += max(0.0, own - mix)
        total += costs
    return np.array(out), total


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_an_ensemble_is_exponential_weights_over_learner_experts_and_stack(loss):
    X, y, experts = stream(400)
    y = y if loss == "logistic" else X[:, 0] + 3.0
    own = rue.Mixture(loss).run(X, y)
    advice = np.column_stack(list(experts.values())) * 4.0 - 2.0
    first = own.copy()
    if loss == "square":
        first[0] = advice[0].mean()
    features = np.column_stack([first, advice])
    stacked = rue.Mixture(loss).run(features, y)
    if loss == "square":
        stacked[0] = first[0]
    ensemble = Ensemble(NAMES, rue.Logistic() if loss == "logistic" else rue.Square())
    p = np.concatenate([ensemble.learn(own[a:b], advice[a:b], y[a:b], np.empty(0)) for a, b in ((0, 7), (7, 400))])
    expected, losses = reference(loss, np.column_stack([features, stacked]), y)
    np.testing.assert_allclose(p, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([member.loss for member in ensemble.standing().members], losses, rtol=1e-9)


def test_never_more_than_ln_4_above_the_best_at_any_row():
    X, y, experts = stream()
    run = rue.learn(X, y, experts=experts)
    together = np.cumsum(run.losses)
    for chances in experts.values():
        assert (together - np.cumsum(log_losses(chances, y))).max() <= math.log(4.0) + 1e-6
    alone = rue.learn(X, y)
    assert (together - np.cumsum(alone.losses)).max() <= math.log(4.0) + 1e-6
    standing = run.experts
    assert [member.kind for member in standing.members[1:3]] == list(NAMES)
    assert standing.members[0].loss == pytest.approx(alone.loss)
    assert standing.members[1].loss == pytest.approx(log_losses(experts["good"], y).sum())
    assert standing.price_at_most == pytest.approx(math.log(4.0))
    assert standing.loss == pytest.approx(run.loss)


def test_numbers_and_their_price():
    X, _, _ = stream(1200)
    rng = np.random.default_rng(5)
    y = 100.0 + X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=1200)
    expert = 100.0 + X[:, 0] * X[:, 1]
    run = rue.learn(X, y, experts={"knows": expert, "mean": np.full(1200, 100.0)})
    best = ((expert - y) ** 2).sum()
    assert run.loss <= best + run.experts.price_at_most + 1e-6
    assert run.loss < 3.0 * best


def test_the_certificate_is_of_what_was_predicted():
    X, y, experts = stream(800)
    run = rue.learn(X, y, experts=experts, units="raw", learner=rue.OGD("logistic"))
    found = rue.certify(X, y, run.predictions, loss="logistic", radius=2.0)
    assert run.certificate(2.0).alone == pytest.approx(found.alone)
    assert run.certificate(2.0).comparator_loss_at_least == pytest.approx(found.comparator_loss_at_least)


def test_resumed_in_pieces_and_saved_is_one_pass_to_the_bit(tmp_path):
    X, y, experts = stream()
    part = lambda a, b: {name: values[a:b] for name, values in experts.items()}  # noqa: E731
    whole = rue.learn(X, y, experts=experts)
    first = rue.learn(X[:700], y[:700], experts=part(0, 700))
    rue.save(first, tmp_path / "m.rue")
    second = rue.learn(X[700:], y[700:], learner=rue.load(tmp_path / "m.rue"), experts=part(700, 1500))
    assert np.array_equal(np.concatenate([first.predictions, second.predictions]), whole.predictions)
    assert second.loss == whole.loss
    assert str(second.experts) == str(whole.experts)
    blocks = [rue.Block(X[a : a + 111], y[a : a + 111]) for a in range(0, 1500, 111)]
    assert np.array_equal(rue.learn(iter(blocks), experts=experts).predictions, whole.predictions)
    rows = slice(1400, 1500)
    rue.save(second, tmp_path / "m.rue")
    p = second.predict(X[rows], experts=part(1400, 1500))
    assert np.array_equal(rue.load(tmp_path / "m.rue").predict(X[rows], experts=part(1400, 1500)), p)
    assert np.mean(np.logaddexp(0.0, -y[rows] * p)) < 0.9 * math.log(2.0)


def test_an_expert_without_a_prediction_is_the_learner_there():
    X, y, experts = stream(300)
    run = rue.learn(X, y, experts={"silent": np.full(300, np.nan)})
    assert run.experts.members[1].loss == run.experts.members[0].loss
    assert rue.learn(X, y, experts={"some": [*experts["good"][:100], *[None] * 200]}).loss < run.loss + 2.0


def test_rows_without_label_or_usable_values_keep_their_experts(tmp_path):
    X, y, experts = stream(600)
    table = pandas.DataFrame(X, columns=list("abc")).assign(y=y)
    good = table.assign(y=table.y.where(np.arange(600) % 5 != 3))
    kept = np.arange(600) % 5 != 3
    run = rue.learn(good, "y", experts={"good": experts["good"]}, task="classify")
    assert run.experts.members[1].loss == pytest.approx(log_losses(experts["good"], y)[kept].sum())
    lines = [f"{a!r},{b!r},{c!r},{label:g}" for a, b, c, label in table.itertuples(index=False)]
    lines[50] = "1,2,3,1,5"
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,y", *lines, ""]))
    skipped = rue.learn(tmp_path / "t.csv", "y", experts={"good": experts["good"]}, bad="skip", task="classify")
    others = np.arange(600) != 50
    assert skipped.experts.members[1].loss == pytest.approx(log_losses(experts["good"], y)[others].sum())


def test_columns_of_a_table_are_experts_and_no_features(tmp_path):
    X, y, experts = stream(500)
    table = pandas.DataFrame(X, columns=list("abc")).assign(y=y)
    beside = rue.learn(table, "y", experts=experts)
    inside = rue.learn(table.assign(**experts), "y", expert_column=NAMES)
    assert np.array_equal(inside.predictions, beside.predictions)
    assert str(inside.experts) == str(beside.experts)
    rue.save(inside, tmp_path / "m.rue")
    rows = table.assign(**experts).drop(columns="y")[:20]
    assert np.array_equal(
        rue.load(tmp_path / "m.rue").predict(rows), beside.predict(table[:20].drop(columns="y"), experts=_first(20))
    )


def _first(rows):
    return {name: values[:rows] for name, values in stream(500)[2].items()}


def test_on_the_command_line_stopped_and_resumed(tmp_path, monkeypatch):
    X, y, experts = stream(900)
    table = pandas.DataFrame(X, columns=list("abc")).assign(y=np.where(y > 0, "yes", "no"))
    monkeypatch.chdir(tmp_path)
    table.to_csv("t.csv", index=False)
    pandas.DataFrame({"prediction": experts["good"]}).to_csv("good.csv", index=False)
    (tmp_path / "noise.txt").write_text("".join(f"{p!r}\n" for p in experts["noise"].tolist()))
    asked = ["--expert", "good=good.csv", "--expert", "noise=noise.txt"]
    common = ["learn", "t.csv", "--target", "y", "-q", *asked]
    done = rue_command(*common, "--model", "m.rue", "--predictions", "p.csv", "--report", "r.json")
    assert "a mixture over all predictions" in done.stdout
    run = rue.learn(tmp_path / "t.csv", "y", experts={"good": "good.csv", "noise": "noise.txt"})
    found = pandas.read_csv("p.csv").prediction.to_numpy()
    assert np.array_equal(found, run.predictions)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["loss_total"] == run.loss
    assert [member["kind"] for member in report["experts"]["members"]][1:3] == ["good", "noise"]
    # One pass that stopped at a bad row goes on behind it when that is mended.
    lines = (tmp_path / "t.csv").read_text().splitlines()
    broken = [*lines[:500], f"{lines[500]},9", *lines[501:]]
    (tmp_path / "t.csv").write_text("\n".join([*broken, ""]))
    stopped = rue_command(*common, "--checkpoint", "c.rue", ok=1)
    assert "line 501" in stopped.stderr
    (tmp_path / "t.csv").write_text("\n".join([*lines, ""]))
    rue_command("learn", "t.csv", "-q", "--resume", "c.rue", *asked, "--model", "again.rue", "--report", "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["loss_total"] == run.loss
    predicted = rue_command("predict", "m.rue", "t.csv", *asked).stdout.split()[1:]
    assert np.array_equal(np.array(predicted, dtype=float), run.predict(tmp_path / "t.csv", experts=experts))


def test_refusals_are_one_sentence(tmp_path):
    X, y, experts = stream(60)
    run = rue.learn(X, y, experts=experts)
    (tmp_path / "words.csv").write_text("prediction\nyes\n")
    cases = [
        ({"good": experts["good"][:-1]}, "the expert good has 59 predictions, but there are more rows"),
        ({"good": [*experts["good"], 0.5]}, "the expert good has 61 predictions, but there are 60 rows"),
        ({"good": experts["good"] + 1.0}, "no probability: if these are log-odds"),
        ({"good": experts["good"], "b": [0.5]}, "the expert b has 1 predictions and good has 60"),
        ({"good": str(tmp_path / "nowhere.csv")}, "there is no file"),
        ({"good": str(tmp_path / "words.csv")}, "line 2: 'yes' is not a number"),
        ({"good": experts["good"] * math.inf}, "must be finite"),
        ({"good": ["a"] * 60}, "must be numbers"),
        ([experts["good"]], "give a dictionary"),
    ]
    for given, why in cases:
        with pytest.raises(rue.RueError, match=why):
            rue.learn(X, y, experts=given)
    with pytest.raises(rue.SettingsError, match="learnt with good, noise"):
        run.predict(X)
    with pytest.raises(rue.SettingsError, match="learnt with good, noise"):
        rue.learn(X, y, learner=run)
    with pytest.raises(rue.SettingsError, match="learnt that they give a probability"):
        rue.learn(X, y, learner=run, experts=experts, experts_as="score")
    with pytest.raises(rue.SettingsError, match="more than two classes"):
        rue.learn(X, np.arange(60) % 3, task="multiclass", experts=experts)
    with pytest.raises(rue.SettingsError, match="outside experts"):
        rue.audit(run, X, y)
    with pytest.raises(rue.SettingsError, match="learnt without"):
        rue.learn(X, y, learner=rue.learn(X, y), experts=experts)


# A learner whose own probabilities are corrected, with outside experts or with none.


def timid(n=2000, seed=3):
    """Rows that a learner confined to a small ball says too little about."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-6.0 * X[:, 0])), 1.0, -1.0)


TIMID = rue.OGD("logistic", "ball:1")


def test_calibrate_is_exponential_weights_over_the_learner_and_a_mixture_of_its_twentieths():
    X, y = timid(500)
    own = rue.learn(X, y, learner=TIMID).predictions
    parts = np.floor(20.0 / (1.0 + np.exp(-own))).clip(0, 19)
    features = np.column_stack([own, *(np.where(parts == k, 1.0, 0.0) for k in range(20))])
    expected, losses = reference("logistic", np.column_stack([own, rue.Mixture("logistic").run(features, y)]), y)
    run = rue.learn(X, y, learner=TIMID, calibrate=True)
    np.testing.assert_allclose(run.predictions, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([member.loss for member in run.experts.members], losses, rtol=1e-9)
    assert [member.kind for member in run.experts.members] == ["the learner alone", "the same, corrected"]
    assert "corrected    lost in total, and weight" in str(run.report())


def test_what_is_corrected_is_better_calibrated_and_never_ln_2_behind():
    X, y = timid()
    alone, run = (rue.learn(X, y, learner=TIMID, calibrate=calibrate) for calibrate in (False, True))
    assert run.loss < 0.8 * alone.loss
    assert run.calibration().error < 0.5 * alone.calibration().error
    noise = np.where(np.random.default_rng(4).random(2000) < 0.5, 1.0, -1.0)
    alone, run = (rue.learn(X, noise, learner=TIMID, calibrate=calibrate) for calibrate in (False, True))
    assert (np.cumsum(run.losses) - np.cumsum(alone.losses)).max() <= math.log(2.0) + 1e-9
    assert run.experts.price_at_most == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("advised", [False, True])
def test_a_corrected_model_goes_on_to_the_same_bits(advised, tmp_path):
    X, y = timid(900)
    y[5::50] = np.nan
    chances = np.random.default_rng(6).random(900)
    experts = lambda a, b: {"experts": {"other": chances[a:b]}} if advised else {}  # noqa: E731
    whole = rue.learn(X, y, learner=TIMID, calibrate=True, task="classify", **experts(0, 900))
    first = rue.learn(X[:400], y[:400], learner=TIMID, calibrate=True, task="classify", **experts(0, 400))
    rue.save(first, tmp_path / "m.rue")
    second = rue.learn(X[400:], y[400:], learner=rue.load(tmp_path / "m.rue"), **experts(400, 900))
    both = np.concatenate([first.predictions, second.predictions])
    assert np.array_equal(both, whole.predictions, equal_nan=True)
    assert second.experts == whole.experts
    assert second.certificate(radius=1) == whole.certificate(radius=1)
    rue.save(second, tmp_path / "m.rue")
    again = rue.load(tmp_path / "m.rue").predict(X[:50], **experts(0, 50))
    assert np.array_equal(again, whole.predict(X[:50], **experts(0, 50)))
    assert not np.array_equal(again, second.learner.predict_many(X[:50]))


def test_calibrate_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = timid(600)
    table = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "won": (y > 0).astype(int)})
    table.to_csv(tmp_path / "t.csv", index=False)
    common = ["t.csv", "--target", "won", "--quiet"]
    told = rue_command("learn", *common, "--calibrate", "--model", "m.rue", "--report", "r.json")
    assert "corrected    lost in total" in told.stdout
    assert json.loads((tmp_path / "r.json").read_text())["experts"]["theorem"] == "M1"
    rue_command("predict", "m.rue", "t.csv", "-o", "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 601


def test_what_cannot_be_corrected_is_refused(tmp_path):
    X, y = timid(60)
    with pytest.raises(rue.SettingsError, match="calibrate: probabilities of two classes are corrected"):
        rue.learn(X, X[:, 0], calibrate=True)
    with pytest.raises(rue.SettingsError, match="calibrate: probabilities of two classes are corrected"):
        rue.learn(X, np.arange(60) % 3, task="classify", calibrate=True)
    with pytest.raises(rue.SettingsError, match="calibrate is True or False, not 3"):
        rue.learn(X, y, learner=TIMID, calibrate=3)
    plain, corrected = (rue.learn(X, y, learner=TIMID, calibrate=calibrate) for calibrate in (False, True))
    with pytest.raises(rue.SettingsError, match="calibrate contradicts the model, which was learnt without it"):
        rue.learn(X, y, learner=plain, calibrate=True)
    with pytest.raises(rue.SettingsError, match="or with calibrate"):
        rue.audit(corrected, X, y)


def test_an_export_of_corrected_probabilities_is_refused_by_their_own_name(tmp_path):
    run = rue.learn(*timid(50), calibrate=True, maps=None)
    with pytest.raises(rue.SettingsError, match="learn without --calibrate"):
        rue.export(run, tmp_path / "model.py")
