import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import type { Selection } from "./useSelection";

/** A bar above a list: a checkbox for all entries, and the actions on the selected ones. */
export function SelectionBar(props: { selection: Selection; listed: readonly string[]; children: ReactNode }) {
  const { t } = useTranslation();
  const { selection, listed } = props;
  const count = selection.ids.length;
  if (listed.length === 0) return null;
  return (
    <div
      className={`mb-2 flex min-h-10 flex-wrap items-center gap-x-3 gap-y-2 rounded-lg px-4 py-1 ${count > 0 ? "sticky top-0 z-10 border border-accent bg-accent-soft" : "border border-transparent"}`}
    >
      <label className="flex min-h-6 cursor-pointer items-center gap-3 text-ink-soft">
        <input
          type="checkbox"
          className="m-1 size-4"
          checked={count > 0 && count === listed.length}
          ref={(box) => {
            if (box) box.indeterminate = count > 0 && count < listed.length;
          }}
          onChange={() => selection.toggleAll(listed)}
        />
        {t("selection.all")}
      </label>
      <span role="status" className="font-medium">
        {count > 0 ? t("selection.count", { count }) : ""}
      </span>
      {count > 0 ? (
        <div className="ml-auto flex flex-wrap items-center gap-2">
          {props.children}
          <Button kind="quiet" onClick={selection.clear}>
            {t("selection.clear")}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

export function SelectionCheckbox(props: { selection: Selection; id: string; label: string }) {
  return (
    <label className="flex size-6 shrink-0 cursor-pointer items-center justify-center">
      <input
        type="checkbox"
        className="size-4"
        aria-label={props.label}
        checked={props.selection.has(props.id)}
        onChange={() => props.selection.toggle(props.id)}
      />
    </label>
  );
}
