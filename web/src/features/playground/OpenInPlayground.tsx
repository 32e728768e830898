import { useNavigate } from "@tanstack/react-router";
import { FlaskConical } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { useHasRole } from "@/components/useHasRole";
import { isObject } from "@/values/changes";
import { EMPTY, literalTemplate } from "./prompt";
import { writeDraft } from "./store";

/** Open the request of a model call in the playground: its system prompt, messages and model, but not its tools. */
export function OpenInPlayground({ input, model }: { input: JsonObject; model: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  if (!useHasRole("editor")) return null;
  const open = () => {
    writeDraft({
      ...EMPTY,
      system: templateOf(input.system),
      user: templateOf(input.prompt),
      messages: Array.isArray(input.messages) ? input.messages.filter(isObject) : [],
      targets: [{ kind: "model", name: model }],
    });
    void navigate({ to: "/playground" });
  };
  return (
    <Button kind="quiet" onClick={open} className="h-6! px-1.5! text-xs" title={t("playground.openAbout")}>
      <FlaskConical className="size-3.5" aria-hidden /> {t("playground.open")}
    </Button>
  );
}

/** A text that was rendered for the call, as a template without variables. */
const templateOf = (value: Json | undefined): string =>
  value === undefined || value === null
    ? ""
    : literalTemplate(typeof value === "string" ? value : JSON.stringify(value, null, 2));
