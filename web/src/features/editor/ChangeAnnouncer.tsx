/** Announce each change to screen readers, however it was made. */
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { describeChange } from "./document/changeDescriptions";
import type { Draft } from "./document/draft";
import { useEditor } from "./editorContext";

export function ChangeAnnouncer() {
  const { t, i18n } = useTranslation();
  const { store, canvas } = useEditor();
  // The counter makes screen readers repeat identical announcements.
  const [announced, announce] = useState({ words: "", nth: 0 });
  useEffect(() => {
    const words = (now: Draft, was: Draft): string | null => {
      const at = canvas.positions();
      const describe = (before: Draft["shown"], changes: Draft["done"][number] | undefined) => {
        const change = describeChange(before, changes ?? [], at, i18n.language);
        return change && t(`editDescription.${change.word}`, change.values);
      };
      if (now.base !== was.base)
        return was.done.length > 0 && now.done.length === 0 ? t("editDescription.saved") : null;
      if (now.undone.length > was.undone.length)
        return t("editDescription.undone", {
          deed: describe(now.shown, now.undone.at(-1)) ?? t("editDescription.typed"),
        });
      if (now.undone.length < was.undone.length && now.done.at(-1) === was.undone.at(-1))
        return t("editDescription.redone", {
          deed: describe(was.shown, now.done.at(-1)) ?? t("editDescription.typed"),
        });
      return now.done.length > was.done.length ? describe(was.shown, now.done.at(-1)) : null;
    };
    return store.subscribe((now, was) => {
      const found = words(now, was);
      if (found !== null) announce(({ nth }) => ({ words: found, nth: nth + 1 }));
    });
  }, [store, canvas, t, i18n.language]);
  return (
    <p role="status" className="sr-only">
      <span key={announced.nth}>{announced.words}</span>
    </p>
  );
}
