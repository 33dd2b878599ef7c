import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.util.Collector;

/** The name of a workload in, its pattern in Flink CEP, and what is kept of a match, out. */
final class Patterns {
    private Patterns() {}

    private static SimpleCondition<Event> is(char kind) {
        byte wanted = (byte) (kind - 'A');
        return SimpleCondition.of(event -> event.kind == wanted);
    }

    private static Pattern<Event, Event> start() {
        return Pattern.<Event>begin("a").where(is('A'));
    }

    /** `within` excludes its bound, so the window is one millisecond longer than one that includes it. */
    static Pattern<Event, ?> of(String workload, long windowMs) {
        Pattern<Event, Event> pattern =
                switch (workload) {
                    case "sequence" -> start().followedByAny("b").where(is('B')).followedByAny("c").where(is('C'));
                    case "count" -> start().followedByAny("b").where(is('B')).followedByAny("c").where(is('C'))
                            .followedByAny("d").where(is('D'));
                    case "negation" -> start().notFollowedBy("n").where(is('D')).followedByAny("b").where(is('B'));
                    case "group" -> start().followedBy("b").where(is('B')).oneOrMore().greedy()
                            .followedByAny("c").where(is('C'));
                    case "next" -> start().followedBy("b").where(is('B'));
                    default -> throw new IllegalArgumentException(workload);
                };
        return pattern.within(Duration.ofMillis(windowMs + 1));
    }

    static PatternProcessFunction<Event, long[]> rows(String workload) {
        return switch (workload) {
            case "sequence" -> new Numbers("a", "b", "c");
            case "negation", "next" -> new Numbers("a", "b");
            case "count" -> new Spans();
            case "group" -> new Group();
            default -> throw new IllegalArgumentException(workload);
        };
    }

    /** The numbers of a match's events. */
    static final class Numbers extends PatternProcessFunction<Event, long[]> {
        private final String[] variables;

        Numbers(String... variables) {
            this.variables = variables;
        }

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<long[]> out) {
            long[] row = new long[variables.length];
            for (int place = 0; place < row.length; place++) {
                row[place] = match.get(variables[place]).get(0).number;
            }
            out.collect(row);
        }
    }

    /** Key, first and last time of a match: what counting needs. */
    static final class Spans extends PatternProcessFunction<Event, long[]> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<long[]> out) {
            Event first = match.get("a").get(0);
            out.collect(new long[] {first.key, first.timeMs, match.get("d").get(0).timeMs});
        }
    }

    /** The numbers of the single events, and a sum over the group that does not depend on its order. */
    static final class Group extends PatternProcessFunction<Event, long[]> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<long[]> out) {
            long elements = 0;
            for (Event element : match.get("b")) {
                elements += Answer.mix(element.number + 1);
            }
            out.collect(new long[] {match.get("a").get(0).number, elements, match.get("c").get(0).number});
        }
    }
}
