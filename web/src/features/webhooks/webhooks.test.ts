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

describe("webhook", () => {
  it("has a complete address", () => {
    expect(addressOf(HOOK)).toBe(`${window.location.origin}/api/webhooks/shop/orders`);
    expect(addressOf({ ...HOOK, address: "/api/webhooks/a b?c" })).toContain("/a%20b%3Fc");
  });

  it("has a curl command that signs id, time and body", () => {
    expect(curlOf(HOOK, "https://x.example/hook")).toContain("webhook-signature: v1,$signature");
    expect(curlOf({ ...HOOK, signed: false }, "https://x.example/hook")).not.toContain("signature");
  });

  it("has a curl command that signs in GitHub's scheme", () => {
    const command = curlOf({ ...HOOK, scheme: "github" }, "https://x.example/hook");
    expect(command).toContain("x-hub-signature-256: sha256=$signature");
    expect(command).not.toContain("webhook-signature");
  });

  it("has an address that is safe in a shell, whatever its path contains", () => {
    expect(curlOf(HOOK, "https://x/'; rm -rf ~ #")).toContain("'https://x/'\\''; rm -rf ~ #'");
  });
});
