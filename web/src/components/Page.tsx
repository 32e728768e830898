import { Link } from "@tanstack/react-router";
import { ChevronLeft } from "lucide-react";
import type { ReactNode } from "react";
import { useTitle } from "./useTitle";

/** The frame of a page of lists and forms: title, description and actions. */
export function Page(props: {
  title: string;
  about?: ReactNode;
  /** Link to the list that contains this entry. */
  back?: { to: string; name: string };
  actions?: ReactNode;
  /** For content side by side. */
  isWide?: boolean;
  children: ReactNode;
}) {
  useTitle(props.title);
  return (
    <div className={`mx-auto p-4 sm:p-6 ${props.isWide ? "max-w-7xl" : "max-w-5xl"}`}>
      {props.back ? (
        <Link
          to={props.back.to}
          className="mb-1 inline-flex h-6 items-center gap-0.5 text-ink-soft hover:text-ink hover:underline"
        >
          <ChevronLeft className="size-4" aria-hidden /> {props.back.name}
        </Link>
      ) : null}
      <div className="flex flex-wrap items-start gap-x-6 gap-y-3">
        <div className="min-w-0 sm:flex-1">
          <h1 className="line-clamp-3 text-xl font-semibold wrap-anywhere">
            <bdi>{props.title}</bdi>
          </h1>
          {props.about ? (
            <p className="mt-1 line-clamp-6 max-w-2xl text-ink-soft wrap-anywhere">{props.about}</p>
          ) : null}
        </div>
        <div className="flex flex-wrap items-center gap-2 empty:hidden max-sm:w-full">{props.actions}</div>
      </div>
      <div className="mt-5">{props.children}</div>
    </div>
  );
}
