import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/**
 * The same by SQL's MATCH_RECOGNIZE, where it can say it: it finds one match for each first row, so only a pattern
 * whose every part is the next of its kind has the same answer.
 */
final class Recognize {
    private static final String NEXT =
            "SELECT a_number, b_number FROM events MATCH_RECOGNIZE ("
                    + " PARTITION BY key ORDER BY event_time"
                    + " MEASURES a.number AS a_number, b.number AS b_number"
                    + " ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW"
                    + " PATTERN (a x* b) WITHIN INTERVAL '%s' SECOND(6, 3)"
                    + " DEFINE a AS a.kind = 0, x AS x.kind <> 1, b AS b.kind = 1)";

    private Recognize() {}

    static DataStream<long[]> rows(
            StreamExecutionEnvironment environment, DataStream<Event> events, String workload, long windowMs) {
        if (!workload.equals("next")) {
            throw new IllegalArgumentException("MATCH_RECOGNIZE cannot say " + workload);
        }
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        Schema schema =
                Schema.newBuilder()
                        .column("number", "BIGINT NOT NULL")
                        .column("key", "INT NOT NULL")
                        .column("kind", "TINYINT NOT NULL")
                        .columnByMetadata("event_time", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
                        .watermark("event_time", "SOURCE_WATERMARK()")
                        .build();
        tables.createTemporaryView("events", events, schema);
        String seconds = String.format("%d.%03d", (windowMs + 1) / 1000, (windowMs + 1) % 1000);
        Table found = tables.sqlQuery(String.format(NEXT, seconds).replace("key", "`key`"));
        return tables.toDataStream(found)
                .map(row -> new long[] {(long) row.getField(0), (long) row.getField(1)})
                .returns(TypeInformation.of(long[].class));
    }
}
