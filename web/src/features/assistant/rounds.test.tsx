import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { startLanguages, switchLanguage } from "@/i18n";
import { Rounds } from "./Rounds";
import type { Round } from "./rounds";

const round = (model: string) =>
  ({ round: 1, model, ok: false, answer: "", problems: [], usage: { modelCalls: 1 } }) as unknown as Round;

beforeAll(async () => {
  await startLanguages();
  await switchLanguage("en");
});
afterEach(cleanup);

describe("rounds of a design", () => {
  it("report that the scripted model answered", () => {
    render(<Rounds rounds={[round("scripted")]} isBusy={false} />);
    screen.getByText(/^Test answer of the scripted model/);
    screen.getByText(/^scripted · /);
  });

  it("report it also if the result has no errors", () => {
    render(<Rounds rounds={[{ ...round("scripted"), ok: true }]} isBusy={false} />);
    screen.getByText(/^Test answer of the scripted model/);
  });

  it("do not mark the answers of a real model", () => {
    render(<Rounds rounds={[round("openai:gpt-5")]} isBusy={false} />);
    expect(screen.queryByText(/scripted/)).toBeNull();
  });
});
