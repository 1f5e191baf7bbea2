// The frame around every page, the addresses of pages, and the keys that work everywhere.
import { lazy, Suspense, useEffect, useState } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { Health } from "./frame/Health";
import { Keys } from "./frame/Keys";
import { Me } from "./frame/Me";
import { Palette } from "./frame/Palette";
import { SignedOut } from "./frame/SignedOut";
import { ChooseWorkspace, useNoWorkspace, WorkspaceSwitch } from "./frame/Workspaces";
import { Home } from "./home/Home";
import { materializeStore, useMaterialize } from "./materialize/open";
import { icons } from "./parts/icons";
import { Empty, Guard, Skeleton } from "./parts/Panel";
import { Toasts } from "./parts/toasts";
import { toggleTheme } from "./theme/theme";
import { useSignedOut } from "./api/client";

const AssetsPage = lazy(() => import("./assets/AssetsPage"));
const AssetPage = lazy(() => import("./assets/AssetPage"));
const RunsPage = lazy(() => import("./runs/RunsPage"));
const RunPage = lazy(() => import("./runs/RunPage"));
const BackfillsPage = lazy(() => import("./backfills/BackfillsPage"));
const BackfillPage = lazy(() => import("./backfills/BackfillPage"));
const AutomationPage = lazy(() => import("./automation/AutomationPage"));
const SchedulePage = lazy(() => import("./automation/SchedulePage"));
const SensorPage = lazy(() => import("./automation/SensorPage"));
const QuarantinePage = lazy(() => import("./quarantine/QuarantinePage"));
const SettingsPage = lazy(() => import("./settings/SettingsPage"));
const DeploymentPage = lazy(() => import("./settings/Deployments"));
const SqlPage = lazy(() => import("./sql/SqlPage"));
const MaterializeDialog = lazy(() => import("./materialize/MaterializeDialog"));

/** Where `g` and a letter go, and what the rail shows. */
export const PLACES = [
  { href: "/", name: "Home", icon: icons.home, key: "h" },
  { href: "/assets", name: "Assets", icon: icons.assets, key: "a" },
  { href: "/runs", name: "Runs", icon: icons.runs, key: "r" },
  { href: "/backfills", name: "Backfills", icon: icons.backfills, key: "b" },
  { href: "/automation", name: "Automation", icon: icons.automation, key: "t" },
  { href: "/quarantine", name: "Quarantine", icon: icons.quarantine, key: "q" },
  { href: "/sql", name: "SQL", icon: icons.sql, key: "d" },
  { href: "/settings", name: "Settings", icon: icons.settings, key: "s" },
] as const;

const isAt = (location: string, href: string) => (href === "/" ? location === "/" : location === href || location.startsWith(`${href}/`));

export function App() {
  const [location, navigate] = useLocation();
  const [open, setOpen] = useState<"palette" | "keys" | undefined>();
  const request = useMaterialize();
  const isSignedOut = useSignedOut();
  const isNowhere = useNoWorkspace();

  useEffect(() => {
    let went = 0;
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOpen("palette");
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select") !== null) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      if (event.key === "g") went = Date.now();
      else if (Date.now() - went < 1500) {
        went = 0;
        const place = PLACES.find((each) => each.key === event.key);
        if (place !== undefined) navigate(place.href);
      } else if (event.key === "?") setOpen("keys");
      else if (event.key === "/") {
        const field = document.querySelector<HTMLElement>("[data-search]");
        event.preventDefault();
        if (field === null) setOpen("palette");
        else field.focus();
      } else if (event.key === "m") materializeStore.open({ selection: "" });
    };
    window.addEventListener("keydown", onKey);
    return () => {
      window.removeEventListener("keydown", onKey);
    };
  }, [navigate]);

  useEffect(() => {
    const place = PLACES.find((each) => isAt(location, each.href));
    document.title = place === undefined || place.href === "/" ? "Servo" : `${place.name} · Servo`;
  }, [location]);

  return (
    <div className="frame">
      <nav className="rail" aria-label="Pages">
        <span className="logo">
          <img src="/icon.svg" alt="" />
        </span>
        {PLACES.map((place) => (
          <Link key={place.href} href={place.href} aria-label={place.name} title={`${place.name} (g ${place.key})`} aria-current={isAt(location, place.href) ? "page" : undefined}>
            {place.icon}
          </Link>
        ))}
      </nav>
      <div className="top">
        <WorkspaceSwitch />
        <button
          type="button"
          className="search"
          onClick={() => {
            setOpen("palette");
          }}
        >
          {icons.search}
          <span className="ellipsis">Search or jump to…</span>
          <span className="key">Ctrl K</span>
        </button>
        <div className="top-right">
          <Me />
          <Health />
          <button type="button" className="button quiet small hide-small" aria-label="Switch between light and dark" onClick={toggleTheme}>
            {icons.moon}
          </button>
        </div>
      </div>
      <main className="main" id="main">
        <Guard key={location}>
          <Suspense fallback={<Skeleton rows={8} />}>
            {isSignedOut ? <SignedOut /> : isNowhere ? <ChooseWorkspace /> : (
            <Switch>
              <Route path="/" component={Home} />
              <Route path="/assets" component={AssetsPage} />
              <Route path="/assets/:namespace/:name">{({ namespace, name }) => <AssetPage key={`${namespace}/${name}`} asset={`${decodeURIComponent(namespace)}/${decodeURIComponent(name)}`} />}</Route>
              <Route path="/runs" component={RunsPage} />
              <Route path="/runs/:run">{({ run }) => <RunPage key={run} id={run} />}</Route>
              <Route path="/backfills" component={BackfillsPage} />
              <Route path="/backfills/:id">{({ id }) => <BackfillPage key={id} id={id} />}</Route>
              <Route path="/automation" component={AutomationPage} />
              <Route path="/automation/schedules/:name">{({ name }) => <SchedulePage key={name} name={decodeURIComponent(name)} />}</Route>
              <Route path="/automation/sensors/:name">{({ name }) => <SensorPage key={name} name={decodeURIComponent(name)} />}</Route>
              <Route path="/quarantine" component={QuarantinePage} />
              <Route path="/sql" component={SqlPage} />
              <Route path="/settings/deployments/:number">{({ number }) => <DeploymentPage key={number} number={Number(number)} />}</Route>
              <Route path="/settings/:tab?">{({ tab }) => <SettingsPage tab={tab ?? "admission"} />}</Route>
              <Route>
                <Empty title="There is no such page">
                  <Link href="/" className="button">
                    Go home
                  </Link>
                </Empty>
              </Route>
            </Switch>
            )}
          </Suspense>
        </Guard>
      </main>
      {open === "palette" ? (
        <Palette
          onClose={() => {
            setOpen(undefined);
          }}
          onKeys={() => {
            setOpen("keys");
          }}
        />
      ) : null}
      {open === "keys" ? (
        <Keys
          onClose={() => {
            setOpen(undefined);
          }}
        />
      ) : null}
      {request === undefined ? null : (
        <Suspense fallback={null}>
          <MaterializeDialog request={request} />
        </Suspense>
      )}
      <Toasts />
    </div>
  );
}
