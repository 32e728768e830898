import { Check, Copy as CopyIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import { putInClipboard } from "./clipboard";

/** Puts a text into the clipboard, and says that it did. */
export function Copy(props: { text: string; name: string }) {
  const { t } = useTranslation();
  const [became, tell] = useState<"done" | "refused" | null>(null);
  const done = became === "done";
  useEffect(() => {
    if (!became) return;
    const over = setTimeout(() => tell(null), 4_000);
    return () => clearTimeout(over);
  }, [became]);
  return (
    <Button
      kind="quiet"
      aria-label={t("copy.of", { name: props.name })}
      onClick={async () => tell((await putInClipboard(props.text)) ? "done" : "refused")}
    >
      {done ? <Check className="size-4 text-done" aria-hidden /> : <CopyIcon className="size-4" aria-hidden />}
      <span aria-live="polite">{t(`copy.${became ?? "copy"}`)}</span>
    </Button>
  );
}
