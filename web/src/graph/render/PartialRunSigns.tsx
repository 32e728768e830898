import { Pin } from "lucide-react";
import { useTranslation } from "react-i18next";
import { usePartialRunMarks } from "./partialRunMarks";

/** Signs on a box: the value is mocked; a partial run stops before it. */
export function PartialRunSigns({ id }: { id: string }) {
  const { t } = useTranslation();
  const { isPinned, hasBreakpoint: isStop } = usePartialRunMarks(id);
  if (!isPinned && !isStop) return null;
  return (
    <span className="absolute -top-2.5 left-2 flex gap-1">
      {isStop ? (
        <span
          title={t("try.stopsHere")}
          className="flex size-5 items-center justify-center rounded-full border border-failed bg-failed-soft"
        >
          <span aria-hidden className="size-2.5 rounded-full bg-failed" />
          <span className="sr-only">{t("try.stopsHere")}</span>
        </span>
      ) : null}
      {isPinned ? (
        <span
          title={t("try.pinnedHere")}
          className="flex size-5 items-center justify-center rounded-full border border-accent bg-accent-soft text-accent"
        >
          <Pin className="size-3" aria-hidden />
          <span className="sr-only">{t("try.pinnedHere")}</span>
        </span>
      ) : null}
    </span>
  );
}
