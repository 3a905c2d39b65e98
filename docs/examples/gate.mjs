// The gate of a serving engine around the tools of an agent: see docs/gate.md. One object for each conversation.
//   ENGINE_URL, AGENT_TOKEN (points tool_visibility, tool_call, tool_result), APPROVER_TOKEN (approves tool_call)

import { createHash, randomUUID } from "node:crypto";

const { ENGINE_URL = "http://127.0.0.1:8642", AGENT_TOKEN, APPROVER_TOKEN } = process.env;

async function post(path, token, body, more = {}) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}`, ...more };
  const response = await fetch(ENGINE_URL + path, { method: "POST", headers, body: JSON.stringify(body) });
  return response.json(); // what is no decision throws below: then nothing is called
}

const reasons = ({ outcome, findings }) => // a denied call cannot be approved: what only asks is left out
  findings.filter((one) => one.level === outcome).map((one) => `\n- ${one.code}. Required: ${one.requirement}. Fix: ${one.remedy}.`).join("");

export class Gate {
  #agent;
  #run = randomUUID();
  #asked = new Set();

  constructor({ policy, profile, cwd, home }) {
    this.#agent = { policy, profile, cwd, home };
  }

  async #decide(point, request, approval, mode = "enforce") {
    const more = { "X-Run-ID": this.#run, ...(approval && { "X-Approval": approval }) };
    const answer = await post(`/v1/decide/${point}?mode=${mode}`, AGENT_TOKEN, request, more);
    return answer.outcome ? answer : answer.decision;
  }

  // The names of the tools that a prompt may show.
  async visible(definitions) {
    const { policy, profile } = this.#agent;
    const { limits } = await this.#decide("tool_visibility", { policy, profile, tools: definitions });
    return limits?.visible ?? [];
  }

  #request(definition, args) {
    return { ...this.#agent, call: { name: definition.name, arguments: args }, definition };
  }

  // Whether a person has to approve this call. If so, the framework makes it only once the person has.
  async asks(definition, args, id) {
    const { outcome } = await this.#decide("tool_call", this.#request(definition, args), null, "check");
    if (outcome === "confirm") this.#asked.add(JSON.stringify([id, definition.name, args]));
    return outcome === "confirm";
  }

  // Decide on a call, make it, decide on its result; text for the model.
  async call(definition, args, run, id) {
    const request = this.#request(definition, args);
    let decision = await this.#decide("tool_call", request);
    if (decision.outcome === "confirm" && this.#asked.delete(JSON.stringify([id, definition.name, args]))) {
      const approval = decision.approval.id;
      await post(`/v1/approvals/${approval}/grant`, APPROVER_TOKEN, { reason: "approved in the agent's program" });
      decision = await this.#decide("tool_call", request, approval);
    }
    if (decision.outcome !== "allow") {
      const how = decision.approval ? `; \`engine approvals grant ${decision.approval.id}\`, then repeat it` : "";
      return `this call is not made (${decision.outcome})${how}${reasons(decision)}`;
    }
    const about = { tool: definition.name, decision: decision.decision_id, side_effects: [] };
    let text;
    let result;
    try {
      const value = await run(args);
      const media = typeof value === "string" ? "text" : "json";
      text = media === "text" ? value : JSON.stringify(value ?? null);
      const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`;
      result = { ...about, status: "ok", result: { bytes: Buffer.byteLength(text), digest, media, text } };
    } catch {
      text = "the tool failed";
      result = { ...about, status: "error", error: { kind: "other", class: "Error" } };
    }
    const { outcome, findings, limits } = await this.#decide("tool_result", result);
    if (outcome !== "allow") return `the tool was called, and its result is withheld${reasons({ outcome, findings })}`;
    if (limits.redact_secrets || limits.redact_hidden || limits.redact_links.length > 0) {
      return "the tool was called, and its result is withheld: write `redact: []` in values/results.yaml";
    }
    return Buffer.from(text).subarray(0, limits.max_bytes).toString();
  }
}
