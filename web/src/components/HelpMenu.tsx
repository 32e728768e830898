/** Links to the documentation of the present page and as a whole, which the server has at `/docs/`, and to the API
 * reference. All are other pages. */
import { useLocation } from "@tanstack/react-router";
import { CircleHelp } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { useTranslation } from "react-i18next";
import { helpPage } from "./helpPages";
import { iconLook } from "./IconButton";

const PAGES = [
  { address: "/docs/", name: "documentation" },
  { address: "/docs/tutorial/first-hour/", name: "firstHour" },
  { address: "/api/docs", name: "apiReference" },
] as const;

export function HelpMenu() {
  const { t } = useTranslation();
  const path = useLocation({ select: (at) => at.pathname });
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger aria-label={t("shell.help")} title={t("shell.help")} className={iconLook()}>
        <CircleHelp className="size-4" aria-hidden />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="end"
          className="z-40 min-w-44 rounded-md border border-line bg-raised p-1 shadow-lg"
        >
          {[{ address: helpPage(path), name: "thisPage" } as const, ...PAGES].map(({ address, name }) => (
            <DropdownMenu.Item key={name} asChild>
              <a
                href={address}
                target="_blank"
                rel="noreferrer"
                className="flex h-8 items-center rounded px-2.5 outline-none data-[highlighted]:bg-sunken"
              >
                {t(`shell.${name}`)}
              </a>
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
