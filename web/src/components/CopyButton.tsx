import { Check, Copy as CopyIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import { copyToClipboard } from "./clipboard";

/** A button that copies a text to the clipboard and confirms it. */
export function CopyButton(props: { text: string; name: string }) {
  const { t } = useTranslation();
  const [outcome, setOutcome] = useState<"done" | "refused" | null>(null);
  const done = outcome === "done";
  useEffect(() => {
    if (!outcome) return;
    const over = setTimeout(() => setOutcome(null), 4_000);
    return () => clearTimeout(over);
  }, [outcome]);
  return (
    <Button
      kind="quiet"
      aria-label={t("copy.of", { name: props.name })}
      onClick={async () => setOutcome((await copyToClipboard(props.text)) ? "done" : "refused")}
    >
      {done ? <Check className="size-4 text-done" aria-hidden /> : <CopyIcon className="size-4" aria-hidden />}
      <span aria-live="polite">{t(`copy.${outcome ?? "copy"}`)}</span>
    </Button>
  );
}
