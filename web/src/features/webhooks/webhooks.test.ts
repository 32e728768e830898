// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { addressOf, curlOf, type Webhook } from "./webhooks";

const HOOK: Webhook = {
  path: "shop/orders",
  address: "/api/webhooks/shop/orders",
  workflowId: "orders",
  trigger: "call",
  event: null,
  signed: true,
  scheme: "standard",
  stopped: null,
};

describe("a webhook", () => {
  it("has a whole address that can be called", () => {
    expect(addressOf(HOOK)).toBe(`${window.location.origin}/api/webhooks/shop/orders`);
    expect(addressOf({ ...HOOK, address: "/api/webhooks/a b?c" })).toContain("/a%20b%3Fc");
  });

  it("is called with a signature over id, time and body where it is signed", () => {
    expect(curlOf(HOOK, "https://x.example/hook")).toContain("webhook-signature: v1,$signature");
    expect(curlOf({ ...HOOK, signed: false }, "https://x.example/hook")).not.toContain("signature");
  });

  it("is called as GitHub signs where that is its scheme", () => {
    const command = curlOf({ ...HOOK, scheme: "github" }, "https://x.example/hook");
    expect(command).toContain("x-hub-signature-256: sha256=$signature");
    expect(command).not.toContain("webhook-signature");
  });

  it("is nothing but an address to a shell, whatever its path holds", () => {
    expect(curlOf(HOOK, "https://x/'; rm -rf ~ #")).toContain("'https://x/'\\''; rm -rf ~ #'");
  });
});
