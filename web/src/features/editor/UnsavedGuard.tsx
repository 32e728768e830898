import { useBlocker, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Confirm } from "@/components/Confirm";

/**
 * Asks whoever goes elsewhere with changes that are not saved; the browser keeps them in any case, and where it does
 * not, it asks by itself before the page is closed. Who said where to go may go on from there: they are asked once.
 */
export function UnsavedGuard({ isChanged, isKept }: { isChanged: boolean; isKept: boolean }) {
  const { t } = useTranslation();
  const router = useRouter();
  const [isAsking, ask] = useState(false);
  const answer = useRef<(stays: boolean) => void>(() => undefined);
  const isGoing = useRef(false);
  useBlocker({
    shouldBlockFn: ({ current, next }) => {
      if (!isChanged || isGoing.current || current.pathname === next.pathname) return false;
      ask(true);
      // Who goes back while asked is asked about that: what was asked before is not answered any more.
      return new Promise<boolean>((resolve) => {
        answer.current = resolve;
      });
    },
    enableBeforeUnload: () => isChanged && !isKept,
  });
  const arrive = () => {
    isGoing.current = false;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: it does the same each time
  useEffect(() => router.subscribe("onResolved", arrive), [router]);
  useEffect(() => () => answer.current(false), []);
  if (!isAsking) return null;
  return (
    <Confirm
      title={t("editor.leave")}
      about={t(isKept ? "editor.leaveAbout" : "editor.leaveAboutUnkept")}
      confirmLabel={t("editor.leaveDeed")}
      action={async () => {
        isGoing.current = true;
        answer.current(false);
      }}
      onClose={() => {
        answer.current(true);
        ask(false);
      }}
    />
  );
}
