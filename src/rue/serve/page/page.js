"use strict";
// What happens at a glance: counts each second from the events of a model, all else from its report.

const $ = (id) => document.getElementById(id);
const state = { token: sessionStorage.getItem("token"), model: "default", before: null, stop: new AbortController() };

const number = (value, digits = 4) =>
  value === null || value === undefined ? "–" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });
const whole = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString("en"));

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]])
    if (seconds >= 2 * size) return `${number(seconds / size, 3)} ${unit}`;
  return `${number(seconds, 3)} s`;
}

function show(id, text, value) {
  const element = $(id);
  if (element.textContent !== text) element.textContent = text;
  if (value !== undefined) element.dataset.value = value;
}

async function ask(path, signal) {
  const headers = state.token ? { authorization: `Bearer ${state.token}` } : {};
  const answer = await fetch(path, { headers, signal, cache: "no-store" });
  if (answer.status === 401) $("ask").hidden = false;
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

const of = (what) => `v1/models/${encodeURIComponent(state.model)}/${what}`;

function live(on) {
  show("state", on ? "live" : "not reached");
  $("state").className = on ? "pill live" : "pill lost";
}

// Events: what changes each second.

function showEvent(event) {
  live(true);
  show("record", `record ${whole(event.record)}`, event.record);
  show("examples", whole(event.examples), event.examples);
  show("risk", number(event.risk), event.risk);
  show("waiting", whole(event.waiting), event.waiting);
  show("pending", whole(event.pending), event.pending);
  show("early", whole(event.early), event.early);
  show("expired", whole(event.expired), event.expired);
  show("late", whole(event.late.labels), event.late.labels);
  show("delay", duration(event.late.seconds.mean));
  show("longest", duration(event.late.seconds.largest));
  const counts = Object.entries(event.requests);
  const all = counts.reduce((sum, [, n]) => sum + n, 0), now = performance.now();
  const refused = counts.reduce((sum, [key, n]) => sum + (key.split("/")[1] >= "400" ? n : 0), 0);
  show("refused", whole(refused), refused);
  if (state.before) show("rate", number((1000 * (all - state.before.all)) / (now - state.before.now), 3));
  state.before = { all, now };
  const errors = event.errors.slice(-8).reverse().map((error) => {
    const item = document.createElement("li");
    item.textContent = `${new Date(error.at).toLocaleTimeString("en-GB")}  ${error.status}  ${error.model}: ${error.error}`;
    return item;
  });
  if (!errors.length) errors.push(Object.assign(document.createElement("li"), { textContent: "none" }));
  $("errors").replaceChildren(...errors);
}

async function listen(signal) {
  while (!signal.aborted) {
    try {
      const reader = (await ask(of("events"), signal)).body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\n\n");
        text = parts.pop();
        for (const part of parts) showEvent(JSON.parse(part.slice(5)));
      }
    } catch {
      if (signal.aborted) return;
    }
    live(false);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// The report: what takes longer to compute.

function line(points, name) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  element.setAttribute("points", points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
  element.setAttribute("class", name);
  return element;
}

// The last windows together, until they have as many examples as a whole one: the very last has perhaps two.
function recentOf(windows, length) {
  const first = windows.findLastIndex((w, i) => i === 0 || windows.at(-1).last - w.first + 1 >= length);
  const sum = (name) => windows.slice(first).reduce((total, w) => total + w[name], 0);
  const [examples, weight, loss, constant] = ["examples", "weight", "loss", "best_constant"].map(sum);
  const joined = { first: windows[first].first, last: windows.at(-1).last, examples, weight, risk: loss / weight, best_constant: constant };
  return [joined, [...windows.slice(0, first), joined]];
}

function drawCurve(windows) {
  const last = windows.at(-1).last, risks = windows.map((w) => w.risk), constants = windows.map((w) => w.best_constant / w.weight);
  const top = 1.1 * Math.max(...risks, ...constants.filter(Number.isFinite));
  const steps = (values) =>
    windows.flatMap((w, i) => [w.first - 1, w.last].map((t) => [(800 * t) / last, 180 * (1 - values[i] / top)]));
  $("curve").replaceChildren(line(steps(constants.map((c) => (Number.isFinite(c) ? c : 0))), "constant"), line(steps(risks), "own"));
  show("from", `0 to ${number(top, 3)}`);
  show("to", `example ${whole(last)}`);
}

function rows(id, entries, empty) {
  const top = Math.max(...entries.map(([, value]) => Math.abs(value)), 1e-300);
  const made = entries.map(([name, value, text]) => {
    const row = document.createElement("tr"), [first, bar, last] = [0, 0, 0].map(() => row.insertCell());
    const meter = document.createElement("meter");
    first.textContent = first.title = name;
    meter.max = 1;
    meter.value = Math.abs(value) / top;
    meter.setAttribute("aria-label", name);
    bar.append(meter);
    last.textContent = text ?? number(value, 3);
    return row;
  });
  if (!made.length) {
    const row = document.createElement("tr");
    row.insertCell().textContent = empty;
    made.push(row);
  }
  $(id).replaceChildren(...made);
}

function shares(report) {
  if (report.stages) return report.stages.stages.map((stage) => [stage.kind, stage.weight]);
  const kinds = new Map();
  for (const member of report.mixture?.members ?? []) kinds.set(member.kind, (kinds.get(member.kind) ?? 0) + member.weight);
  return [...kinds].sort((a, b) => b[1] - a[1]);
}

function showReport(report) {
  show("certificate", report.certificate?.words ?? report.no_certificate ?? report.learner ?? "");
  $("certificate").dataset.examples = report.examples;
  show("regret", number(report.certificate?.regret_at_most), report.certificate?.regret_at_most ?? "");
  show("regret-of", report.certificate ? `of a total loss of ${number(report.loss_total)}` : "");
  const windows = report.windows?.listed ?? [];
  if (windows.length) {
    const [recent, drawn] = recentOf(windows, report.windows.length);
    show("recent", number(recent.risk), recent.risk);
    show("recent-of", `of the last ${whole(recent.examples)} examples`);
    $("recent").className = recent.risk > 1.2 * report.risk ? "worse" : "";
    drawCurve(drawn);
  }
  rows("members", shares(report).map(([kind, share]) => [kind, share, share < 1e-4 ? "< 0.01 %" : `${number(100 * share, 3)} %`]), "one learner");
  showRace(report.service.challenger);
}

function showRace(race) {
  $("race").hidden = !race;
  if (!race) return;
  show("challenger", race.learner ?? JSON.stringify(race.options));
  show("its", number(race.risk), race.risk);
  show("ours", number(race.incumbent_risk), race.incumbent_risk);
  show("ahead", number(race.better_by_at_least), race.better_by_at_least);
  show("evidence", race.words);
}

// What is there; null if the service is not reached.
const asked = (what, signal) => ask(of(what), signal).then((answer) => answer.json()).catch(() => null);

async function look(signal) {
  while (!signal.aborted) {
    const started = performance.now();
    const report = await asked("report", signal);
    const found = report?.examples ? await asked("weights?top=10", signal) : null;
    if (signal.aborted) return;
    try {
      if (found) {
        showReport(report);
        rows("weights", found.weights.map((weight) => [weight.slice(0, -1).join(", "), weight.at(-1)]), "none");
      }
    } catch (error) {
      console.error(error); // a mistake of this page: the tests look at the console
    }
    const pause = Math.min(30000, Math.max(2000, 60 * (performance.now() - started))); // requests wait for a report
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function begin() {
  state.stop.abort();
  state.stop = new AbortController();
  state.before = null;
  try {
    const { models } = await (await ask("v1/models")).json();
    $("ask").hidden = true;
    $("models").replaceChildren(...models.map(({ name }) => new Option(name, name, false, name === state.model)));
  } catch {
    live(false);
    if ($("ask").hidden) setTimeout(begin, 2000);
    return;
  }
  listen(state.stop.signal);
  look(state.stop.signal);
}

$("models").addEventListener("change", (event) => {
  state.model = event.target.value;
  begin();
});
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = $("token").value;
  sessionStorage.setItem("token", state.token);
  begin();
});
begin();
