import { screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { open, server } from "@/testing/page";
import { refusal } from "@/testing/server";

beforeEach(() => {
  server.get("/api/secrets", { secrets: [], elsewhere: [], next: null });
});

describe("credentials", () => {
  it("are saved with their secret parts and hosts, by type", async () => {
    const sent: unknown[] = [];
    server.put("/api/secrets/{name}/credential", ({ at, body }) => {
      sent.push(at, body);
      return undefined;
    });
    const { user } = await open("/secrets");
    await user.click(await screen.findByRole("button", { name: "Add credential" }));
    await user.selectOptions(screen.getByLabelText("Type"), "oauth2-client");
    await user.type(screen.getByLabelText(/^Name/), "SHOP");
    await user.type(screen.getByLabelText(/Token address/), "https://id.example.com/token");
    await user.type(screen.getByLabelText(/Client id/), "app");
    const save = screen.getByRole<HTMLButtonElement>("button", { name: "Save" });
    expect(save.disabled).toBe(true);
    await user.type(screen.getByLabelText(/Client secret/), "canary-123");
    await user.type(screen.getByLabelText(/Hosts/), "api.example.com");
    await user.click(save);
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(sent[1]).toMatchObject({
      type: "oauth2-client",
      tokenUrl: "https://id.example.com/token",
      clientId: "app",
      clientSecret: "canary-123",
      hosts: ["api.example.com"],
    });
  });

  it("lead to the login of the service, whose return address is shown", async () => {
    const assign = vi.spyOn(window.location, "assign").mockImplementation(() => undefined);
    server.put("/api/secrets/{name}/credential", () => undefined);
    server.post("/api/secrets/{name}/authorization", {
      address: "https://id.example.com/authorize?state=s",
      redirect: "http://localhost/connected/SHOP",
    });
    const { user } = await open("/secrets");
    await user.click(await screen.findByRole("button", { name: "Add credential" }));
    await user.selectOptions(screen.getByLabelText("Type"), "oauth2-code");
    await user.type(screen.getByLabelText(/^Name/), "SHOP");
    await screen.findByText(/\/connected\/SHOP$/);
    await user.type(screen.getByLabelText(/Authorization address/), "https://id.example.com/authorize");
    await user.type(screen.getByLabelText(/Token address/), "https://id.example.com/token");
    await user.type(screen.getByLabelText(/Client id/), "app");
    await user.click(screen.getByRole("button", { name: "Save and log in" }));
    await waitFor(() => expect(assign).toHaveBeenCalledWith("https://id.example.com/authorize?state=s"));
    assign.mockRestore();
  });

  it("are connected by the page to which the service returns, which removes the code from the address", async () => {
    const sent: unknown[] = [];
    server.put("/api/secrets/{name}/authorization", ({ body }) => {
      sent.push(body);
      return undefined;
    });
    window.history.replaceState(null, "", "/connected/SHOP?code=1e5&state=s-1");
    await open("/connected/SHOP");
    await screen.findByText(/SHOP is connected/);
    expect(sent).toEqual([{ code: "1e5", state: "s-1" }]);
    expect(window.location.search).toBe("");
  });

  it("show why a login was refused", async () => {
    server.put("/api/secrets/{name}/authorization", refusal(422, "authorization-refused", "no visit"));
    window.history.replaceState(null, "", "/connected/SHOP?code=c&state=forged");
    await open("/connected/SHOP");
    await screen.findByText(/no visit/);
    window.history.replaceState(null, "", "/connected/SHOP?error=access_denied");
  });
});
